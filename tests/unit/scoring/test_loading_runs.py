"""Several runs of one benchmark are loaded together."""

import sqlite3

import pytest
from msgspec.structs import replace

from ledger_rows import alter
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.core.errors import DataError
from medthink.runs.manifest import read_manifest, write_manifest
from medthink.scoring.inputs import load_all, load_run, load_runs
from medthink.scoring.score import cached_scores, score_run
from medthink.workflow.condition import Condition


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
    alter(
        run / "ledger.sqlite",
        "UPDATE calls SET state = iif(id = 1, 'failed', 'done')",
        "INSERT INTO attempts SELECT key, 1, '', 'ok', 1, 0.0, NULL, 0.5, 0, 0.0, '' FROM calls",
    )
    usage = score_run(run).usage
    assert (usage.calls, usage.cost_usd.value) == (9, 5.0)
    alter(run / "ledger.sqlite", "UPDATE attempts SET cost_usd = NULL")
    assert score_run(run).usage.cost_usd.value is None


def forget_predictions(run):
    with sqlite3.connect(run / "ledger.sqlite") as ledger:
        ledger.execute("DELETE FROM predictions")


def test_a_run_that_was_killed_is_read_off_its_ledger(make_run):
    run = make_run("run")
    scored = score_run(run)
    (run / "predictions.jsonl").unlink()
    assert score_run(run).cases == scored.cases


def test_a_run_that_was_stopped_before_it_had_results_says_so(make_run):
    run = make_run("run")
    (run / "predictions.jsonl").unlink()
    forget_predictions(run)
    with pytest.raises(
        DataError, match=r"run: the run was stopped before it had results\n.*run the same command again"
    ):
        score_run(run)


def test_an_empty_shard_is_named_as_one(make_run):
    run = make_run("run")
    manifest = read_manifest(run)
    write_manifest(run, replace(manifest, progress=replace(manifest.progress, cases=0)))
    (run / "predictions.jsonl").write_bytes(b"")
    forget_predictions(run)
    with pytest.raises(DataError, match=r"run: the run has no cases\n.*merge it with the others"):
        score_run(run)


def test_a_run_that_is_not_there_is_not_taken_for_a_file(tmp_path, capsys):
    assert run_command(["score", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such run or file" in capsys.readouterr().err


def test_a_run_and_its_own_predictions_as_a_file_are_loaded_and_scored_alike(make_run, bench, tmp_path):
    run = make_run("run", condition=Condition(samples=3))
    file = (run / "predictions.jsonl").rename(tmp_path / "elsewhere.jsonl")
    (run / "predictions.jsonl").write_bytes(file.read_bytes())
    loaded = load_all([run, file], bench)
    assert loaded[0].cases is loaded[1].cases
    of_run, of_file = (cached_scores(path, one) for path, one in zip([run, file], loaded, strict=True))
    assert [one.right for one in of_file.cases] == [one.right for one in of_run.cases]
    assert of_file.answers.repeats == of_run.answers.repeats
    assert any(0 < one.right < 1 for one in of_file.cases)


def test_samples_that_a_file_lacks_are_failed(bench, tmp_path):
    file = tmp_path / "two.jsonl"
    file.write_text('{"case": 100, "sample": 0, "prediction": "A"}\n{"case": 100, "sample": 4, "prediction": "B"}\n')
    [material] = load_all([file], bench)
    assert len(material.predictions) == 80
    assert sum(one.state == "failed" for one in material.predictions) == 78


def test_a_file_without_its_benchmark_is_refused(tmp_path, capsys):
    (tmp_path / "p.jsonl").write_text('{"case": 100, "prediction": "A"}\n')
    for command in ("score", "compare"):
        assert run_command([command, str(tmp_path / "p.jsonl")]) == 2
        assert "--data" in capsys.readouterr().err


def test_files_and_runs_are_compared_alike(make_run, bench, tmp_path, capsys):
    run, other = make_run("run"), make_run("other", model="baseline/longest")
    file = tmp_path / "theirs.jsonl"
    file.write_bytes((other / "predictions.jsonl").read_bytes())
    assert run_command(["compare", str(run), str(file), "--data", str(bench)]) == 0
    assert "theirs.jsonl" in capsys.readouterr().out
    cued = make_run("cued", condition=Condition(summary="expert"))
    assert run_command(["compare", str(cued), str(file), "--data", str(bench)]) == 2
    assert "shown expert cues" in capsys.readouterr().err
