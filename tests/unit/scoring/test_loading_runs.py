"""Several runs of one benchmark are loaded together."""

import sqlite3

import pytest

from medthink.cases.benchmark import Benchmark
from medthink.cli.door import enter
from medthink.core.errors import DataError
from medthink.runs.manifest import read_manifest
from medthink.scoring.material import load_run, load_runs
from medthink.scoring.score import score_run


def test_runs_on_the_same_cases_are_loaded_from_one_reading(make_run, some_cases, monkeypatch):
    runs = [make_run("a"), make_run("b"), make_run("fewer", selection=some_cases)]
    opened = []
    original = Benchmark.open
    monkeypatch.setattr(Benchmark, "open", lambda path: opened.append(path) or original(path))
    loaded = load_runs(runs)
    assert len(opened) == 2
    assert loaded[0].cases is loaded[1].cases
    assert len(loaded[2].cases) < len(loaded[0].cases)
    for together, alone in zip(loaded, map(load_run, runs), strict=True):
        assert together.cases.keys() == alone.cases.keys()
        assert together._replace(cases={}) == alone._replace(cases={})


def test_what_failed_calls_cost_is_in_the_cost_of_the_run(make_run, some_cases):
    run = make_run("run", selection=some_cases)
    with sqlite3.connect(run / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE calls SET cost_usd = 0.5, state = iif(id = 1, 'failed', 'done')")
    usage = score_run(run).usage
    assert (usage.calls, usage.cost_usd.value) == (9, 5.0)
    with sqlite3.connect(run / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE calls SET cost_usd = NULL, state = 'failed'")
    assert score_run(run).usage.cost_usd.value is None


def test_a_run_that_was_stopped_before_it_had_results_says_so(make_run):
    run = make_run("run")
    (run / "predictions.jsonl").unlink()
    assert read_manifest(run)
    with pytest.raises(
        DataError, match=r"run: the run was stopped before it had results\n.*run the same command again"
    ):
        score_run(run)


def test_an_empty_shard_is_named_as_one(make_run):
    run = make_run("run")
    (run / "predictions.jsonl").write_bytes(b"")
    with pytest.raises(DataError, match=r"run: the run has no case\n.*merge it with the others"):
        score_run(run)


def test_a_run_that_is_not_there_is_not_taken_for_a_file(tmp_path, capsys):
    assert enter(["score", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such run or file" in capsys.readouterr().err
