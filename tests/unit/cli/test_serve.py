"""`medthink serve` says what it cannot do, and its demo fills every page."""

from pathlib import Path

import pytest

from medthink.accounts.invitations import accept_personal_link as enter_by
from medthink.board.benchmarks import find_benchmark
from medthink.board.ranking import make_leaderboard
from medthink.board.submissions import list_submissions
from medthink.cli.command import run_command
from medthink.cli.serve_demo import TEAM, fill_demo, fill_submissions
from medthink.store.engine import Store, store_url


def test_a_benchmark_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["serve", "--no-browser", "--store", str(tmp_path / "b.sqlite"), "--data", str(tmp_path / "nowhere")]
    assert run_command(words) == 2
    assert "nowhere is not there" in capsys.readouterr().err


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve") / "demo"
    fill_demo(folder, cases=40)
    return folder


def test_the_demo_is_made_once_and_has_a_board(demo: Path):
    made = {path: path.stat().st_mtime_ns for path in demo.rglob("*.jsonl")}
    store, _ = fill_demo(demo, cases=40)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    opened = Store(store_url(store))
    board = make_leaderboard(opened, find_benchmark(opened, None))
    opened.close()
    assert sorted(row.submission.model for row in board.rows if row.submission.team != TEAM) == [
        "baseline/longest", "baseline/random", "baseline/retrieval",
    ]  # fmt: skip


def test_the_demo_has_submissions_in_every_state_and_people_to_enter_as(demo: Path):
    store = Store(store_url(demo / "board.sqlite"))
    links = fill_submissions(store, demo / "phantoms", demo / "runs")
    states = {one.status for one in list_submissions(store, team=TEAM)}
    assert states == {"received", "failed", "scored", "invalid", "published", "withdrawn"}
    assert [enter_by(store, secret).roles for secret in links.values()] == [("submitter",), ("maintainer",)]
    before = len(list_submissions(store))
    fill_submissions(store, demo / "phantoms", demo / "runs")
    assert len(list_submissions(store)) == before
    store.close()
