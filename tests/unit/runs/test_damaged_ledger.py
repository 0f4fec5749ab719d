"""A ledger whose bytes are not what was written is one clear error, whichever command meets it."""

import json
import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ledger_rows import alter as alter_with_digests
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.core.errors import LedgerError
from medthink.runs.calls.answerers import open_answerer
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.web.app.benchmarks import BenchmarkCache
from medthink.web.runs.index import RunIndex
from medthink.workflow.tasks import default_condition
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


class Counting:
    """Counts the calls that a session makes."""

    def __init__(self, bench: Path) -> None:
        self._inner = open_answerer("baseline/retrieval", benchmark=Benchmark.open(bench))
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def answer(self, *words: object) -> object:
        self.calls += 1
        return await self._inner.answer(*words)


@pytest.fixture(scope="module")
def half(whole) -> Path:
    """A run of 60 calls, 31 of them made: ten cases are finished, and one is begun."""
    out = whole / "half"
    assert run_command(["run", str(whole / "bench"), *TASK, "--out", str(out), "--max-calls", "31"]) == 1
    return out


def go_on(bench: Path, run: Path) -> tuple[Counting, list[str | None]]:
    answerer = Counting(bench)
    spec = RunSpec(benchmark=bench, model="baseline/retrieval", task="twi", condition=default_condition("twi"), out=run)
    try:
        return answerer, [one.prediction for one in run_session(spec, answerer=answerer).run.predictions()]
    except LedgerError as error:
        assert "the ledger is damaged: " in str(error) and f"medthink salvage {run} -o NEW" in str(error)
        return answerer, []


@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_bit_is_found_before_the_first_call_or_changes_nothing(whole, half, tmp_path, seed):
    _, letters = go_on(whole / "bench", shutil.copytree(half, tmp_path / "whole"))
    chance = random.Random(seed)
    run = shutil.copytree(half, tmp_path / "run")
    data = bytearray((run / "ledger.sqlite").read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    (run / "ledger.sqlite").write_bytes(data)
    answerer, made = go_on(whole / "bench", run)
    assert (answerer.calls, made) in ((0, []), (29, letters))


def test_a_call_missing_in_an_index_is_not_asked_again(whole, half, tmp_path):
    run = shutil.copytree(half, tmp_path / "run")
    with closing(sqlite3.connect(run / "ledger.sqlite")) as connection, connection:
        # The index of keys as it was before the last call was written.
        connection.execute("PRAGMA writable_schema = ON")
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_calls_1'")
        root, size = page.fetchone()[0], connection.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray((run / "ledger.sqlite").read_bytes())
    start = (root - 1) * size
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    data[start + 3 : start + 5] = (cells - 1).to_bytes(2, "big")
    (run / "ledger.sqlite").write_bytes(data)
    assert go_on(whole / "bench", run)[0].calls == 0


def test_what_can_be_read_of_a_damaged_ledger_is_kept_and_only_the_rest_is_asked_again(whole, half, tmp_path, capfd):
    _, letters = go_on(whole / "bench", shutil.copytree(half, tmp_path / "whole"))
    run, new = shutil.copytree(half, tmp_path / "run"), tmp_path / "new"
    alter(run / "ledger.sqlite", "UPDATE calls SET reply = replace(reply, 'a', 'b') WHERE id IN (3, 31)")
    before = (run / "ledger.sqlite").read_bytes()
    assert run_command(["salvage", str(run), "-o", str(new), "--json"]) == 0
    (said,) = json.loads(capfd.readouterr().out)
    assert (said["name"], said["calls"], said["lost_calls"]) == ("ledger.sqlite", 29, 2)
    assert (run / "ledger.sqlite").read_bytes() == before
    answerer, made = go_on(whole / "bench", new)
    # One of the two calls belongs to a case whose prediction is kept.
    assert (answerer.calls, made) == (30, letters)


@pytest.mark.parametrize("damage", ["zeroed pages", "cut in half", "bad JSON", "no UTF-8", "bad predictions"])
def test_the_salvaged_run_is_whole_again(whole, tmp_path, damage):
    run = shutil.copytree(whole / "run", tmp_path / "run")
    DAMAGES[damage](run / "ledger.sqlite")
    code = run_command(["salvage", str(run), "-o", str(tmp_path / "new")])
    if damage in ("zeroed pages", "cut in half"):
        assert code in (0, 2)  # a table whose first page is gone cannot be read at all
    else:
        assert code == 0
    if code == 0:
        assert run_command(["run", str(whole / "bench"), *TASK, "--out", str(tmp_path / "new")]) == 0
        assert run_command(["score", str(tmp_path / "new")]) == 0


def test_what_holds_no_ledger_is_not_salvaged(tmp_path, capfd):
    assert run_command(["salvage", str(tmp_path), "--out", str(tmp_path / "new")]) == 2
    assert "holds no ledger" in capfd.readouterr().err


ALTERED = {
    "letters in the file": lambda run: overwrite(
        run / "predictions.jsonl", lambda data: re.sub(rb'"prediction":"."', b'"prediction":"E"', data, count=9)
    ),
    "letters in the ledger": lambda run: alter(
        run / "ledger.sqlite",
        "UPDATE predictions SET body = json_set(body, '$.prediction', 'E') WHERE case_id < 109",
    ),
    "costs": lambda run: (
        alter_with_digests(
            run / "ledger.sqlite",
            "INSERT INTO attempts SELECT key, 1, '', 'ok', 1, 0.0, NULL, 0.5, 0, 0.0, '' FROM calls",
        ),
        alter(run / "ledger.sqlite", "UPDATE attempts SET cost_usd = 0.1"),
    ),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_prediction_or_cost_is_named(whole, tmp_path, capfd, what):
    run = shutil.copytree(whole / "run", tmp_path / "run")
    ALTERED[what](run)
    bench = str(whole / "bench")
    for words in (
        ["score", str(run)],
        ["submission", "pack", str(run), "-o", str(tmp_path / "s.jsonl")],
        ["board", "add", str(run), "--data", bench, "--team", "T", "--store", str(tmp_path / "board.sqlite")],
    ):
        capfd.readouterr()
        assert run_command(words) == 2, words
        said = capfd.readouterr().err
        assert "100" in said and ("altered" in said or "not as" in said), said
    if what != "letters in the file":
        assert run_command(["show", str(run), "101"]) == 2
    else:
        assert run_command(["run", bench, *TASK, "--out", str(run)]) == 0
        assert (run / "predictions.jsonl").read_bytes() == (whole / "run" / "predictions.jsonl").read_bytes()


def test_the_ledger_of_another_release_is_called_that(whole, tmp_path, capfd):
    run = shutil.copytree(whole / "run", tmp_path / "run")
    alter(run / "ledger.sqlite", "PRAGMA user_version = 16")
    assert run_command(["score", str(run)]) == 2
    assert "written by another release" in capfd.readouterr().err
