"""Images replaced while a run is under way are never asked about, and the run names the cases that failed for it."""

import shutil

import pytest

from medthink.cases.benchmark import Benchmark
from medthink.runs.calls.answerers import open_answerer
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from small_benchmark import picture


class Meddling:
    """Replaces the images of later cases after so many answers, and keeps the digests of the images it was shown."""

    def __init__(self, bench, after, meddle):
        self._inner = open_answerer("baseline/random", benchmark=Benchmark.open(bench))
        self._after, self._meddle = after, meddle
        self.calls, self.shown, self.concurrency = 0, set(), 1

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def answer(self, prompt, request, log):
        self.calls += 1
        self.shown |= {image.digest for image in request.images}
        if self.calls == self._after:
            self._meddle()
        return await self._inner.answer(prompt, request, log)


def _replace(bench, numbers):
    for number in numbers:
        for file in (bench / f"images/case{number:05d}").iterdir():
            file.write_bytes(picture(9_000_000 + number))


@pytest.mark.parametrize("limits", [{}, {"image_max_side": 16}])
def test_a_case_whose_images_were_replaced_is_failed_named_and_asked_again(benchmark, tmp_path, limits):
    kept = shutil.copytree(benchmark, tmp_path / "kept")
    own = {image.digest() for case in Benchmark.open(benchmark)["test"] for image in case.question.images}
    spec = RunSpec(benchmark=benchmark, model="baseline/random", out=tmp_path / "run", condition=Condition(**limits))
    asked = Meddling(benchmark, 4, lambda: _replace(benchmark, range(104, 112)))
    made = run_session(spec, answerer=asked).run
    failed = [one for one in made.predictions() if one.state == "failed"]
    # A case or two may have been made ready before the images were replaced.
    assert 6 <= len(failed) <= 8 and asked.calls == 12 - len(failed)
    assert limits or asked.shown <= own
    assert all("changed since the run was started" in one.detail for one in failed)
    assert made.manifest.progress.word == "partly failed"
    shutil.rmtree(benchmark)
    kept.rename(benchmark)
    again = run_session(spec)
    assert again.calls_made == len(failed)
    assert again.run.manifest.progress.states == {"ok": 12}
