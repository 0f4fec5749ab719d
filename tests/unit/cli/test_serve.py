"""`medthink serve` says what it cannot do, and its demo fills every page."""

from pathlib import Path

import pytest

from medthink.board.benchmarks import find_benchmark
from medthink.board.ranking import make_leaderboard
from medthink.board.store import BoardStore, store_url
from medthink.cli.door import enter
from medthink.cli.serve_demo import fill_demo


def test_a_benchmark_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["serve", "--no-open", "--store", str(tmp_path / "b.sqlite"), "--data", str(tmp_path / "nowhere")]
    assert enter(words) == 2
    assert "nowhere is not there" in capsys.readouterr().err


def test_the_demo_is_made_once_and_has_a_board(tmp_path: Path):
    store, bench = fill_demo(tmp_path / "demo", cases=12)
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "demo").rglob("*.jsonl")}
    assert fill_demo(tmp_path / "demo", cases=12) == (store, bench)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    opened = BoardStore(store_url(store))
    board = make_leaderboard(opened, find_benchmark(opened, None))
    opened.close()
    assert sorted(row.submission.model for row in board.rows) == [
        "baseline/longest", "baseline/random", "baseline/retrieval",
    ]  # fmt: skip
