"""A ledger whose bytes are not what was written is one clear error, whichever command meets it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from medthink.cli.command import run_command
from medthink.web.app.benchmarks import BenchmarkCache
from medthink.web.runs.index import RunIndex
from small_benchmark import write_benchmark

TASK = ("--model", "baseline/retrieval", "--task", "twi")
BAD_JSON = "UPDATE calls SET reply = substr(reply, 1, 20) WHERE id % 3 = 0"
BAD_TEXT = "UPDATE calls SET reply = CAST(x'7bff7d' AS TEXT) WHERE id % 3 = 0"
BAD_PREDICTION = "UPDATE predictions SET body = '{\"case\":' WHERE case_id % 2 = 0"


def overwrite(path: Path, change) -> None:
    path.write_bytes(change(path.read_bytes()))


def alter(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


DAMAGES = {
    "no database": lambda path: overwrite(path, lambda data: b"not a database at all\n" * 50),
    "no header": lambda path: overwrite(path, lambda data: bytes(100) + data[100:]),
    "nothing": lambda path: overwrite(path, lambda data: b""),
    "cut in half": lambda path: overwrite(path, lambda data: data[: len(data) // 2]),
    "zeroed pages": lambda path: overwrite(path, lambda data: data[:4096] + bytes(40960) + data[45056:]),
    "bad JSON": lambda path: alter(path, BAD_JSON),
    "no UTF-8": lambda path: alter(path, BAD_TEXT),
    "bad predictions": lambda path: alter(path, BAD_PREDICTION),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    bench = write_benchmark(root / "bench", cases=20, images=1)
    assert run_command(["run", str(bench), *TASK, "--out", str(root / "run")]) == 0
    assert run_command(["judge", str(root / "run"), "--judge", "baseline/rules", "--kinds", "steps"]) == 0
    return root


def commands(bench: Path, run: Path) -> dict[str, list[object]]:
    return {
        "status": ["status", run],
        "resume": ["run", bench, *TASK, "--out", run],
        "dry run": ["run", bench, *TASK, "--out", run, "--dry-run"],
        "replay": ["run", bench, "--model", f"replay/{run}", "--task", "twi", "--out", run.parent / "again"],
        "list": ["show", run],
        "case": ["show", run, 102],
        "score": ["score", run],
        "pack": ["submission", "pack", run, "-o", run.parent / "lines.jsonl"],
    }


def is_said(code: int, said: str) -> bool:
    return code == 2 and said.count("medthink: ") == 1 and "the ledger is damaged: " in said


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_killed", [False, True])
def test_every_command_says_so_or_needs_nothing_of_what_is_damaged(whole, tmp_path, capfd, damage, is_killed):
    outcomes = {}
    for name in commands(whole, whole):
        run = tmp_path / name / "run"
        shutil.copytree(whole / "run", run)
        DAMAGES[damage](run / "ledger.sqlite")
        if is_killed:
            (run / "predictions.jsonl").unlink()
        capfd.readouterr()
        code = run_command([str(word) for word in commands(whole / "bench", run)[name]])
        said = capfd.readouterr().err
        assert code == 0 or is_said(code, said), (name, code, said)
        outcomes[name] = code
    if damage in ("no database", "no header", "nothing"):
        assert set(outcomes.values()) == {2}, outcomes


@pytest.mark.parametrize("damage", ["no database", "cut in half", "bad JSON"])
def test_the_ledger_of_judging_is_told_in_the_same_way(whole, tmp_path, capfd, damage):
    run = shutil.copytree(whole / "run", tmp_path / "run")
    DAMAGES[damage](run / "judge.sqlite")
    capfd.readouterr()
    code = run_command(["judge", str(run), "--judge", "baseline/rules", "--kinds", "steps"])
    said = capfd.readouterr().err
    assert is_said(code, said) and "judge.sqlite" in said


def test_a_ledger_that_lost_its_calls_is_not_paid_for_again(whole, tmp_path, capfd):
    run = shutil.copytree(whole / "run", tmp_path / "run")
    alter(run / "ledger.sqlite", "DELETE FROM calls WHERE id > 3")
    assert run_command(["run", str(whole / "bench"), *TASK, "--out", str(run)]) == 2
    assert "is damaged: it holds 3 calls, and run.json counts 60" in capfd.readouterr().err
    assert (run / "predictions.jsonl").read_bytes() == (whole / "run" / "predictions.jsonl").read_bytes()


def test_a_damaged_run_is_shown_as_such_among_the_others(whole, tmp_path):
    good, bad = (shutil.copytree(whole / "run", tmp_path / name) for name in ("good", "bad"))
    (bad / "predictions.jsonl").unlink()
    DAMAGES["cut in half"](bad / "ledger.sqlite")
    shelf = RunIndex([good, bad], BenchmarkCache())
    assert [run.name for run in shelf.runs()] == ["good"]
    (broken,) = shelf.broken()
    assert broken.name == "bad" and "the ledger is damaged" in broken.problem
