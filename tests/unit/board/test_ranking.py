"""The board ranks what has predictions in one family; what is withdrawn leaves a trace; any day can be looked up."""

import json

import pytest
import sqlalchemy as sa

from calling import call_command
from medthink.board.benchmarks import add_benchmark, find_benchmark
from medthink.board.moderation import withdraw
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.board.ranking import make_leaderboard
from medthink.board.results import load_published
from medthink.board.submissions import ModelDescription
from medthink.cli.command import run_command
from medthink.core.errors import Declined, UsageError
from medthink.runs.session import run as run_model
from medthink.store import tables


@pytest.fixture
def add(store, held, tmp_path):
    """Adds a model that is right on its first cases, as many as are asked for."""

    def make(model: str, right: int, team: str = "north", **about):
        rows = [
            {"title": case.title, "prediction": case.reference.answer if place < right else None}
            for place, case in enumerate(held.cases.values())
        ]
        path = tmp_path / f"{model}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        addition = DirectSubmission(source=path, team=team, model=model, about=ModelDescription(**about))
        return add_to_board(store, held, addition, name="demo", actor="ann")

    return make


def board(store, as_of=None):
    return make_leaderboard(store, find_benchmark(store, None), as_of)


def test_ranks_are_ranges_and_what_cannot_be_told_apart_shares_a_letter(store, add):
    add("best", 12)
    add("good", 11)
    add("poor", 0)
    rows = board(store).rows
    assert [row.submission.model for row in rows] == ["best", "good", "poor"]
    assert [(row.rank, row.worst) for row in rows] == [(1, 2), (1, 2), (3, 3)]
    assert set(rows[0].letters) & set(rows[1].letters)
    assert not set(rows[0].letters) & set(rows[2].letters)


def test_runs_with_expert_cues_have_a_ranking_of_their_own(store, add):
    add("plain", 6)
    add("cued", 12, is_expert_cued=True)
    made = board(store)
    assert [row.submission.model for row in made.rows] == ["plain"]
    assert [row.submission.model for row in made.cued] == ["cued"]


def test_a_withdrawn_row_leaves_the_ranking_and_a_trace(store, add):
    token = add("best", 12).token
    add("good", 11)
    withdraw(store, token, actor="ann", why="contaminated")
    made = board(store)
    assert [row.submission.model for row in made.rows] == ["good"]
    assert [row.submission.reason for row in made.withdrawn] == ["contaminated"]


def test_the_board_can_be_seen_as_of_a_day(store, add):
    add("old", 5)
    add("new", 6)
    with store.write() as connection:
        old = sa.select(tables.submissions.c.id).where(tables.submissions.c.model == "old").scalar_subquery()
        change = tables.events.update().where(tables.events.c.submission_id == old)
        connection.execute(change.values(at="2020-01-02T00:00:00Z"))
    assert [row.submission.model for row in board(store, "2020-01-02").rows] == ["old"]
    assert board(store, "2020-01-01").rows == ()
    assert len(board(store).rows) == 2


def test_all_submissions_of_a_team_and_family_are_counted(store, add):
    for number in range(3):
        add(f"m{number}", number, family="m")
    add("other", 5, team="south")
    counts = {row.submission.model: (row.by_team, row.by_family) for row in board(store).rows}
    assert counts == {"m0": (3, 3), "m1": (3, 3), "m2": (3, 3), "other": (1, 1)}


def test_a_ranking_is_made_once_and_read_again(store, add, monkeypatch):
    add("one", 3)
    add("two", 9)
    first = board(store).rows
    monkeypatch.setattr("medthink.board.ranking.rank_together", lambda *_, **__: pytest.fail("made again"))
    assert board(store).rows == first


def test_a_run_is_added_with_its_ledger(store, held, bench, tmp_path):
    run_model(bench, model="baseline/random", out=tmp_path / "run")
    added = add_to_board(store, held, DirectSubmission(source=tmp_path / "run", team="us"), actor="ann")
    assert (added.status, added.provenance, added.model) == ("published", "ledger", "baseline/random")
    again = add_to_board(store, held, DirectSubmission(source=tmp_path / "run", team="us"), actor="ann")
    assert again.token == added.token


def test_a_file_with_problems_is_not_added(store, held, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"title": "Case number 100", "prediction": "Z"}\n')
    with pytest.raises(Declined, match="line 1, prediction"):
        add_to_board(store, held, DirectSubmission(source=tmp_path / "bad.jsonl", team="us", model="m"), actor="ann")
    with pytest.raises(UsageError, match="the model's name is missing"):
        add_to_board(store, held, DirectSubmission(source=tmp_path / "bad.jsonl", team="us"), actor="ann")


def test_the_published_results_are_59_multiples_of_one_in_720():
    known = load_published()
    assert (len(known.results), known.n_cases) == (59, 720)
    assert known.results[0].model == "claude-4.6-opus"
    assert round(100 * known.accuracy(known.results[0]).value, 2) == 57.22
    assert sum(bool(one.note) for one in known.results) == 4


def test_which_benchmark_must_be_said_where_there_are_several(store, held):
    with pytest.raises(UsageError, match="none yet"):
        find_benchmark(store, None)
    add_benchmark(store, held, "demo")
    assert find_benchmark(store, None).name == "demo"


@pytest.mark.parametrize("command", ["check", "score"])
def test_a_submission_that_is_not_there_is_named_with_the_remedy(command, bench, tmp_path, capsys):
    assert run_command(["submission", command, str(tmp_path / "none.jsonl"), "--data", str(bench)]) == 2
    assert capsys.readouterr().err == f"medthink: {tmp_path / 'none.jsonl'}: no such file\n  → check the path\n"


def test_the_commands_pack_check_add_list_withdraw_back_up_and_restore(bench, tmp_path):
    from medthink.cli.board import board as board_group
    from medthink.cli.submission import submission

    def call(group, *words):
        found = call_command(group, words, catch_exceptions=False)
        assert found.exit_code == 0, found.output
        return found.output

    run_model(bench, model="baseline/random", out=tmp_path / "run")
    run_model(bench, model="baseline/longest", out=tmp_path / "longest")
    call(submission, "pack", tmp_path / "run", "-o", tmp_path / "s.jsonl")
    assert "No problems in 12 lines" in call(submission, "check", tmp_path / "s.jsonl", "--data", bench)
    assert (
        json.loads(call(submission, "score", tmp_path / "s.jsonl", "--data", bench, "--json"))["provenance"] == "traced"
    )
    call(submission, "hub", tmp_path / "run", "-o", tmp_path / "r.yaml")
    assert "task_id: test" in (tmp_path / "r.yaml").read_text()
    place = ("--store", tmp_path / "b.sqlite")
    file = ("--model-name", "ours", "--team", "us", "--data", bench, "--json")
    token = json.loads(call(board_group, "add", tmp_path / "s.jsonl", *file, *place))["token"]
    call(board_group, "add", tmp_path / "longest", "--team", "them", "--data", bench, *place)
    assert "them" in call(board_group, "list", "--published", *place)
    call(board_group, "withdraw", token, "--reason", "a mistake", *place)
    call(board_group, "backup", "-o", tmp_path / "b.zip", *place)
    call(board_group, "restore", tmp_path / "b.zip", "--store", tmp_path / "c.sqlite")
    listed = json.loads(call(board_group, "list", "--store", tmp_path / "c.sqlite", "--json"))
    assert [row["submission"]["reason"] for row in listed["withdrawn"]] == ["a mistake"]
