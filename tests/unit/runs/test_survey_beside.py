"""The first calls do not wait for the survey of the benchmark, and nothing that it finds out is lost."""

import threading

import pytest

import medthink.runs.survey as surveys
from medthink.cases.benchmark import Benchmark
from medthink.core.errors import DataError, UsageError
from medthink.runs.calls.answerers import open_answerer
from medthink.runs.manifest import RunSpec, read_manifest
from medthink.runs.run import Run
from medthink.runs.selection import Selection
from medthink.runs.session import run_session
from small_benchmark import picture


class Remote:
    """A model from afar that answers at once; `on_call` is told the number of each call."""

    is_remote, concurrency = True, 1

    def __init__(self, bench, on_call=lambda _: None):
        self._inner = open_answerer("baseline/random", benchmark=Benchmark.open(bench))
        self._on_call = on_call
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def answer(self, prompt, request, log):
        self.calls += 1
        self._on_call(self.calls)
        return await self._inner.answer(prompt, request, log)


@pytest.fixture
def gate(monkeypatch):
    """The survey waits until it is opened."""
    opened, real = threading.Event(), surveys.survey

    def wait_and_survey(*words, stop, **named):
        while not opened.wait(0.01):
            if stop.is_set():
                raise surveys._Stopped("stopped")
        return real(*words, stop=stop, **named)

    monkeypatch.setattr(surveys, "survey", wait_and_survey)
    return opened


def spec_of(benchmark, tmp_path, **changes):
    return RunSpec(benchmark=benchmark, model="baseline/random", out=tmp_path / "run", **changes)


def test_calls_are_made_before_the_survey_has_ended_and_the_run_is_pinned_by_it(benchmark, tmp_path, gate):
    prints = []

    def note(number):
        prints.append(read_manifest(tmp_path / "run").fingerprint)
        if number == 12:
            with pytest.raises(UsageError, match="has no fingerprint yet"):
                Run.open(tmp_path / "run").cases()
            gate.set()

    run = run_session(spec_of(benchmark, tmp_path), answerer=Remote(benchmark, note)).run
    assert prints == [""] * 12
    split = Benchmark.open(benchmark)["test"]
    assert (run.manifest.fingerprint, run.manifest.text_fingerprint) == split.fingerprints()
    assert run.manifest.progress.is_complete and len(run.cases()) == 12
    assert run_session(spec_of(benchmark, tmp_path)).calls_made == 0


def test_a_case_asked_about_an_image_that_the_survey_finds_otherwise_is_failed_and_asked_again(
    benchmark, tmp_path, gate
):
    def meddle(number):
        if number == 6:
            for case_id in (100, 102):
                for file in (benchmark / f"images/case{case_id:05d}").iterdir():
                    file.write_bytes(picture(9_000_000 + case_id))
            gate.set()

    run = run_session(spec_of(benchmark, tmp_path), answerer=Remote(benchmark, meddle)).run
    failed = {one.case: one for one in run.predictions() if one.state == "failed"}
    assert set(failed) == {100, 102}
    assert all("has changed since the run was started" in one.detail for one in failed.values())
    assert all(one.prediction is None and one.calls for one in failed.values())
    again = run_session(spec_of(benchmark, tmp_path))
    assert (again.calls_made, again.run.manifest.progress.states) == (2, {"ok": 12})


def test_a_run_that_ends_before_its_survey_keeps_every_answered_call(benchmark, tmp_path, gate):
    def stop(number):
        if number == 5:
            raise DataError("enough", remedy="none")

    with pytest.raises(DataError, match="enough"):
        run_session(spec_of(benchmark, tmp_path), answerer=Remote(benchmark, stop))
    made = Run.open(tmp_path / "run")
    assert (made.manifest.fingerprint, made.manifest.progress.states) == ("", {"ok": 4})
    gate.set()
    again = run_session(spec_of(benchmark, tmp_path))
    assert (again.calls_made, again.run.manifest.progress.states) == (8, {"ok": 12})
    assert again.run.manifest.fingerprint and again.run.manifest.amendments == ()


def test_a_row_that_is_no_case_ends_the_run_and_keeps_what_was_answered(benchmark, tmp_path):
    file = benchmark / "test.jsonl"
    good = file.read_text()
    file.write_text(good + '{"title": "no case"}\n')
    with pytest.raises(DataError, match=r"test\.jsonl"):
        run_session(spec_of(benchmark, tmp_path), answerer=Remote(benchmark))
    file.write_text(good)
    kept = Run.open(tmp_path / "run").manifest.progress.calls.get("done", 0)
    again = run_session(spec_of(benchmark, tmp_path))
    assert (again.calls_made, again.run.manifest.progress.states) == (12 - kept, {"ok": 12})


def test_an_unknown_case_is_refused_before_the_first_call(benchmark, tmp_path):
    asked = Remote(benchmark)
    with pytest.raises(UsageError, match="no such case"):
        run_session(spec_of(benchmark, tmp_path, selection=Selection(split="test", cases=(100, 999))), answerer=asked)
    assert asked.calls == 0 and not (tmp_path / "run" / "run.json").exists()
