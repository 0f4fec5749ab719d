"""Before the first call the benchmark is read once, and its images only where they may have changed."""

import json
from pathlib import Path

import pytest

from medthink.cases.benchmark import Benchmark
from medthink.cases.images import fact_cache
from medthink.cases.images.stores import FolderImages
from medthink.cli.command import run_command
from medthink.runs.calls.answerers import BaselineAnswerer
from medthink.runs.dry_run import estimate
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from small_benchmark import write_benchmark


@pytest.fixture(autouse=True)
def settled(monkeypatch, tmp_path):
    monkeypatch.setattr(fact_cache, "SETTLED_NS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def bench(tmp_path) -> Path:
    return write_benchmark(tmp_path / "bench", cases=60)


@pytest.fixture
def seen(monkeypatch) -> list[str]:
    """What happens, in order: a pass over the cases that came to its end, an image that was read, a call."""
    events: list[str] = []
    rows, read, answer = Benchmark.rows_or_errors, FolderImages.read_stamped, BaselineAnswerer.answer

    def rows_or_errors(self):
        yield from rows(self)
        events.append("pass")

    def read_stamped(self, path):
        events.append("read")
        return read(self, path)

    async def note_answer(self, prompt, request, log):
        events.append("call")
        return await answer(self, prompt, request, log)

    monkeypatch.setattr(Benchmark, "rows_or_errors", rows_or_errors)
    monkeypatch.setattr(FolderImages, "read_stamped", read_stamped)
    monkeypatch.setattr(BaselineAnswerer, "answer", note_answer)
    return events


def spec(bench: Path, name: str, **changes) -> RunSpec:
    return RunSpec(**({"benchmark": bench, "model": "baseline/random", "out": bench.parent / name} | changes))


def before_first_call(seen: list[str]) -> list[str]:
    return seen[: seen.index("call")]


def test_one_pass_and_each_image_once_before_the_first_call(bench, seen):
    run_session(spec(bench, "first"))
    began = before_first_call(seen)
    assert began.count("pass") == 1
    # The images of the split; then those of the cases that are being asked about.
    assert began.index("pass") == 120
    seen.clear()
    run_session(spec(bench, "second"))
    began = before_first_call(seen)
    assert began.index("pass") == 0, "no image was read to know that it is the same"


def test_rehash_reads_every_image_again(bench, seen):
    first = run_session(spec(bench, "first")).run.manifest
    seen.clear()
    second = run_session(spec(bench, "second", rehash=True)).run.manifest
    assert before_first_call(seen).index("pass") == 120
    assert first.fingerprint == second.fingerprint


def test_a_change_is_seen_and_the_calls_have_the_digests_of_what_is_sent(bench, seen):
    before = run_session(spec(bench, "first")).run.manifest.fingerprint
    (bench / "images/case00103/i103x1.jpg").write_bytes((bench / "images/case00104/i104x1.jpg").read_bytes())
    seen.clear()
    assert run_session(spec(bench, "second")).run.manifest.fingerprint != before
    assert before_first_call(seen).index("pass") == 1


def test_an_estimate_reads_nothing_twice_either(bench, seen):
    estimate(spec(bench, "first"))
    seen.clear()
    run_session(spec(bench, "first"))
    assert before_first_call(seen).index("pass") == 0


def test_the_flag_is_kept_in_the_plan(bench, tmp_path):
    words = ["run", str(bench), "--model", "baseline/random", "--out", str(tmp_path / "run"), "--rehash"]
    assert run_command(words) == 0
    assert "rehash = true" in (tmp_path / "run/plan.toml").read_text()
    assert json.loads((tmp_path / "run/run.json").read_text())["progress"]["is_complete"]
