"""Shards on machines of their own: their copies, their pace, and the merged run that goes on."""

import shutil
import threading
from pathlib import Path

import pytest

from medthink.core.errors import LedgerError, UsageError
from medthink.models.limits import RateLimits
from medthink.models.transport import Transport
from medthink.runs import shards
from medthink.runs.manifest import RunSpec
from medthink.runs.run import Run
from medthink.runs.selection import Selection, Shard
from medthink.runs.session import run_session


@pytest.fixture(autouse=True)
def own_scratch(tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(shards, "_scratch_folder", lambda token: tmp_path / "scratch")
    return tmp_path / "scratch"


def _spec(benchmark, out, number, **changes):
    selection = Selection(split="test", shard=Shard(number, 2))
    return RunSpec(
        **({"benchmark": benchmark, "model": "baseline/random", "out": out, "selection": selection} | changes)
    )


def test_a_worker_killed_while_it_fetches_its_shard_begins_again(benchmark, tmp_path, own_scratch, monkeypatch):
    place = tmp_path / "run.shards/1"
    run_session(_spec(benchmark, place, 1, max_calls=2))
    copytree = shutil.copytree

    def die(source: Path, target: Path) -> None:
        target.mkdir()
        (target / "ledger.sqlite").write_bytes((source / "ledger.sqlite").read_bytes()[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(shards.shutil, "copytree", die)
    with pytest.raises(KeyboardInterrupt):
        shards.work_on_shard(_spec(benchmark, place, 1), Transport(), "t")
    monkeypatch.setattr(shards.shutil, "copytree", copytree)
    end = shards.work_on_shard(_spec(benchmark, place, 1), Transport(), "t")
    assert end.error is None and end.progress.is_complete
    assert end.calls_made == end.progress.calls["done"] - 2


def test_a_copy_that_fails_does_not_end_the_later_ones(benchmark, tmp_path, monkeypatch):
    run = run_session(_spec(benchmark, tmp_path / "run", 1)).run.path
    tried, made, copy_ledger = [], threading.Event(), shards._copy_ledger

    def copy(ledger: Path, target: Path) -> None:
        tried.append(target)
        if len(tried) == 1:
            raise OSError(5, "Input/output error")
        copy_ledger(ledger, target)
        made.set()

    monkeypatch.setattr(shards, "_copy_ledger", copy)
    with shards._copying(run, tmp_path / "copy", 0.01):
        assert made.wait(60)
    assert Run(tmp_path / "copy").manifest.progress.is_complete


def test_a_copy_that_cannot_be_made_at_the_end_is_named(benchmark, tmp_path):
    run = run_session(_spec(benchmark, tmp_path / "run", 1)).run.path
    (tmp_path / "copy").write_text("a file")
    with pytest.raises(LedgerError, match="cannot be copied to"):
        shards.copy_run(run, tmp_path / "copy")


def test_a_pace_that_cannot_be_divided_is_refused_with_the_figure():
    limited = Transport(pace=RateLimits(concurrency=16, requests_per_minute=10))
    with pytest.raises(UsageError, match="64 requests a minute"):
        shards.share_pace(limited, 64)
    assert shards.share_pace(limited, 4).pace.requests_per_minute == 2


def test_a_merged_run_goes_on_after_an_image_was_repaired(benchmark, tmp_path):
    image = benchmark / "images/case00104/i104x1.jpg"
    kept = image.read_bytes()
    image.write_bytes(b"broken")
    parts = [run_session(_spec(benchmark, tmp_path / str(number), number)).run.path for number in (1, 2)]
    merged = shards.merge_shards(tmp_path / "whole", parts)
    assert merged.manifest.progress.states == {"failed": 1, "ok": 11}
    image.write_bytes(kept)
    session = run_session(_spec(benchmark, tmp_path / "whole", 1, selection=Selection(split="test")))
    assert session.calls_made == 1 and session.run.manifest.progress.states == {"ok": 12}
