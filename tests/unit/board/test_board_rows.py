"""What a row carries beside its rank: condition and usage from its traces, gain, judged profile; and it all as data."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from calling import call_command
from medthink.board.benchmarks import find_benchmark
from medthink.board.checking import check_file
from medthink.board.exports import export_board
from medthink.board.moderation import raise_provenance
from medthink.board.packing import pack_run
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.board.ranking import make_leaderboard
from medthink.board.results import ScoreCache, read_rivals
from medthink.cli.judge import judge
from medthink.judge.exam.results import NO_EXAM
from medthink.runs.session import run as run_model
from medthink.store import tables
from medthink.workflow.condition import Condition


def board(store, as_of=None):
    return make_leaderboard(store, find_benchmark(store, None), as_of)


def add_run(store, held, bench, out, team="us", **options):
    run_model(bench, out=out, **options)
    return add_to_board(store, held, DirectSubmission(source=out, team=team), name="demo", actor="ann")


def test_condition_and_usage_come_from_traces_that_hold(held, bench, tmp_path):
    run_model(bench, model="baseline/random", task="twi", condition=Condition(findings="self", summary="self"),
              out=tmp_path / "run")  # fmt: skip
    pack_run(tmp_path / "run", tmp_path / "s.jsonl")
    scores = check_file(tmp_path / "s.jsonl", held).scores
    assert (scores.origin.task, scores.origin.kind) == ("twi", "unaided")
    assert scores.usage.calls > 12 and {step.step for step in scores.steps} == {"findings", "summary"}
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    rows[2]["prediction"] = "A" if rows[2]["prediction"] != "A" else "B"
    (tmp_path / "forged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    forged = check_file(tmp_path / "forged.jsonl", held).scores
    assert (forged.origin.task, forged.usage) == ("submission", None)


def test_every_row_is_set_against_guessers_and_its_own_blind_run(store, held, bench, tmp_path):
    seeing = add_run(store, held, bench, tmp_path / "seeing", model="baseline/random")
    assert {one.name for one in read_rivals(store, seeing.benchmark_id)} >= {"longest option"}
    row = board(store).rows[0]
    assert row.gain is not None and not row.gain.has_own_blind
    add_run(store, held, bench, tmp_path / "blind", model="baseline/random", condition=Condition(image_share=0))
    made = board(store)
    assert [row.submission.id for row in made.rows] == [seeing.id]
    assert made.rows[0].gain.has_own_blind and made.rows[0].gain.digest != row.gain.digest
    assert made.rivals[0].name == max(made.rivals, key=lambda one: one.accuracy.value).name


def test_a_row_that_saw_a_part_of_each_case_has_another_ranking(store, held, bench, tmp_path):
    for share in (1.0, 0.5, 0.0):
        condition = Condition(image_share=share)
        add_run(store, held, bench, tmp_path / f"s{share}", model="baseline/random", condition=condition)
    made = board(store)
    assert (len(made.rows), len(made.partial), len(made.cued)) == (1, 2, 0)
    assert {row.rank for row in made.partial} == {1} and made.rows[0].rank is None


def test_gains_are_worked_out_once(store, held, bench, tmp_path, monkeypatch):
    add_run(store, held, bench, tmp_path / "one", model="baseline/random")
    first = board(store).rows[0].gain
    monkeypatch.setattr("medthink.board.results.gain_over_strongest", lambda *_, **__: pytest.fail("made again"))
    assert board(store).rows[0].gain == first


def test_scores_are_read_once(store, held, bench, tmp_path, monkeypatch):
    add_run(store, held, bench, tmp_path / "one", model="baseline/random")
    shelf, benchmark = ScoreCache(store), find_benchmark(store, None)
    first = make_leaderboard(store, benchmark, shelf=shelf).rows
    monkeypatch.setattr(ScoreCache, "_load", lambda *_: pytest.fail("read again"))
    assert make_leaderboard(store, benchmark, shelf=shelf).rows == first


def test_a_day_in_the_past_has_the_levels_of_that_day(store, held, bench, tmp_path):
    run_model(bench, model="baseline/random", out=tmp_path / "run")
    pack_run(tmp_path / "run", tmp_path / "s.jsonl")
    addition = DirectSubmission(source=tmp_path / "s.jsonl", team="us", model="m")
    token = add_to_board(store, held, addition, actor="ann").token
    raise_provenance(store, token, "rerun", actor="ann", why="a test")
    assert board(store).rows[0].submission.provenance == "rerun"
    with store.write() as connection:
        earlier = tables.events.update().where(tables.events.c.what != "provenance")
        connection.execute(earlier.values(at="2020-01-02T00:00:00Z"))
    then = board(store, "2020-01-03").rows[0].submission
    assert (then.provenance, then.published_at) == ("traced", "2020-01-02T00:00:00Z")


def test_what_judges_said_comes_with_the_run(store, held, bench, tmp_path):
    run_model(bench, model="baseline/random", task="twi", condition=Condition(findings="self", summary="self"),
              out=tmp_path / "run")  # fmt: skip
    add = DirectSubmission(source=tmp_path / "run", team="us")
    add_to_board(store, held, add, actor="ann")
    assert board(store).rows[0].judged is None
    judged = call_command(judge, [tmp_path / "run", "--judge", "baseline/rules"], catch_exceptions=False)
    assert judged.exit_code == 0, judged.output
    add_to_board(store, held, add, actor="ann")
    judged = board(store).rows[0].judged.leading
    assert judged.steps > 0 and set(judged.error_types) >= {"image_understanding", "reasoning"}
    assert judged.exam == NO_EXAM


def test_the_board_as_data_says_the_same_in_every_form(store, held, bench, tmp_path):
    add_run(store, held, bench, tmp_path / "one", model="baseline/random", team="=cmd()")
    add_run(store, held, bench, tmp_path / "two", model="baseline/longest", team="us")
    made = board(store)
    forms = {form: export_board(made, form) for form in ("json", "csv", "parquet")}
    assert forms == {form: export_board(made, form) for form in forms}
    plain = json.loads(forms["json"])["rows"]
    table = pq.read_table(io.BytesIO(forms["parquet"])).to_pylist()
    spread = list(csv.DictReader(forms["csv"].decode().splitlines()))
    assert [row["model"] for row in plain] == [row["model"] for row in table] == [row["model"] for row in spread]
    assert [row["accuracy"] for row in table] == [row["accuracy"] for row in plain]
    assert {row["team"] for row in table} == {"=cmd()", "us"} and {row["team"] for row in spread} == {"'=cmd()", "us"}
    assert all(b"WITHHELD" not in data and b"gold" not in data for data in forms.values())


def test_an_empty_board_has_every_form_too(store, entered):
    made = make_leaderboard(store, entered)
    assert json.loads(export_board(made, "json"))["rows"] == []
    assert export_board(made, "csv") == b""
    assert pq.read_table(io.BytesIO(export_board(made, "parquet"))).num_rows == 0
