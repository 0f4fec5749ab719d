"""Running a row again: sample and bound are stated before, and chance alone does not bear a row out."""

import json

import msgspec
import numpy as np
import pytest
from scipy.stats import hypergeom

from calling import call_command
from ledger_rows import replace_predictions
from medthink.board.benchmarks import find_benchmark
from medthink.board.checking import LoadedBenchmark
from medthink.board.history import history
from medthink.board.packing import pack_run
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.board.ranking import make_leaderboard
from medthink.board.rerun import LEAST_CASES, RerunPlan, describe_rerun, plan_rerun, record_rerun
from medthink.board.submissions import find_submission
from medthink.core.errors import UsageError
from medthink.core.jsonio import read_json, write_json
from medthink.runs.selection import Selection
from medthink.runs.session import run as run_model
from medthink.stats.intervals import finite_upper_bound
from medthink.store.engine import Store, store_url
from small_benchmark import write_benchmark

CASES = 80


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A benchmark with more cases than a sample has, and a traced file of a model that answers by lot."""
    root = tmp_path_factory.mktemp("rerun")
    bench = write_benchmark(root / "bench", CASES, images=1)
    run_model(bench, model="baseline/random", out=root / "run")
    pack_run(root / "run", root / "packed.jsonl")
    return root


@pytest.fixture
def board(wide, tmp_path):
    store = Store(store_url(tmp_path / "board.sqlite"))
    held = LoadedBenchmark.open(wide / "bench")
    addition = DirectSubmission(source=wide / "packed.jsonl", team="north", model="by lot")
    token = add_to_board(store, held, addition, name="demo", actor="ann").token
    yield store, held, token
    store.close()


def run_again(wide, out, plan):
    selection = Selection(split="test", cases=plan.cases)
    run_model(wide / "bench", model="baseline/random", selection=selection, out=out)
    return out


def change_letters(run, count):
    """Have a run give other letters to its first cases."""
    path = run / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[:count]:
        row["prediction"] = "A" if row["prediction"] != "A" else "B"
    replace_predictions(run, "".join(json.dumps(row) + "\n" for row in rows).encode())


def test_a_row_that_gives_the_same_answers_again_is_raised(wide, board, tmp_path):
    store, held, token = board
    assert find_submission(store, token).provenance == "traced"
    plan = plan_rerun(store, token, actor="ann")
    outcome = record_rerun(store, token, run_again(wide, tmp_path / "again", plan), held, actor="ann")
    assert (outcome.cases, outcome.same, outcome.is_within) == (LEAST_CASES, LEAST_CASES, True)
    assert find_submission(store, token).provenance == "rerun"
    row = make_leaderboard(store, find_benchmark(store, None)).rows[0]
    assert row.rerun == outcome and "60 of 60 answers the same" in describe_rerun(row.rerun)


def test_a_row_that_answers_otherwise_is_not_raised_and_says_so(wide, board, tmp_path):
    store, held, token = board
    plan = plan_rerun(store, token, actor="ann")
    run = run_again(wide, tmp_path / "again", plan)
    change_letters(run, 12)
    outcome = record_rerun(store, token, run, held, actor="ann")
    assert (outcome.same, outcome.is_within) == (LEAST_CASES - 12, False)
    assert outcome.most > 12 / LEAST_CASES
    assert find_submission(store, token).provenance == "traced"
    assert make_leaderboard(store, find_benchmark(store, None)).rows[0].rerun == outcome


def test_a_later_run_that_refutes_takes_the_mark_away(wide, board, tmp_path):
    store, held, token = board
    run = run_again(wide, tmp_path / "one", plan_rerun(store, token, actor="ann"))
    assert record_rerun(store, token, run, held, actor="ann").is_within
    run = run_again(wide, tmp_path / "two", plan_rerun(store, token, actor="ann"))
    change_letters(run, LEAST_CASES)
    outcome = record_rerun(store, token, run, held, actor="ann")
    assert (outcome.same, outcome.is_within) == (0, False)
    assert find_submission(store, token).provenance == "traced"
    last = history(store, find_submission(store, token).id)[-1]
    assert (last["what"], last["detail"]["level"]) == ("provenance", "traced") and "0 of 60" in last["detail"]["why"]


def test_a_run_of_some_of_the_drawn_cases_is_refused(wide, board, tmp_path):
    store, held, token = board
    run = run_again(wide, tmp_path / "again", plan_rerun(store, token, actor="ann"))
    rows = (run / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    replace_predictions(run, b"".join(rows[:36]))
    with pytest.raises(UsageError, match="no answer to 24 of the 60 cases drawn"):
        record_rerun(store, token, run, held, actor="ann")
    assert find_submission(store, token).provenance == "traced"


def test_sample_and_bound_are_in_the_history_before_and_stay_until_settled(board):
    store, _, token = board
    plan = plan_rerun(store, token, bound=0.2, actor="ann")
    assert plan_rerun(store, token, bound=0.3, cases=70, actor="ann") == plan
    number = find_submission(store, token).id
    planned = [event["detail"] for event in history(store, number) if event["what"] == "rerun planned"]
    assert [msgspec.convert(one, RerunPlan) for one in planned] == [plan]
    known = np.arange(100, 100 + CASES)
    drawn = np.random.default_rng(plan.seed).choice(known, LEAST_CASES, replace=False)
    assert plan.cases == tuple(sorted(drawn.tolist()))


def test_every_further_attempt_is_held_to_more(wide, board, tmp_path):
    store, held, token = board
    for attempt, confidence in ((1, 0.975), (2, 0.9875)):
        plan = plan_rerun(store, token, actor="ann")
        run = run_again(wide, tmp_path / f"again{attempt}", plan)
        change_letters(run, 30)
        outcome = record_rerun(store, token, run, held, actor="ann")
        assert (outcome.attempt, outcome.confidence) == (attempt, pytest.approx(confidence))


def test_a_run_of_other_cases_or_from_before_is_refused(wide, board, tmp_path):
    store, held, token = board
    with pytest.raises(UsageError, match="no sample is drawn"):
        record_rerun(store, token, wide / "run", held, actor="ann")
    plan = plan_rerun(store, token, actor="ann")
    with pytest.raises(UsageError, match="does not cover exactly the cases drawn"):
        record_rerun(store, token, wide / "run", held, actor="ann")
    run = run_again(wide, tmp_path / "again", plan)
    manifest = read_json(run / "run.json")
    write_json(run / "run.json", manifest | {"created_at": "2001-01-01T00:00:00Z"})
    with pytest.raises(UsageError, match="before its cases were drawn"):
        record_rerun(store, token, run, held, actor="ann")
    write_json(run / "run.json", manifest | {"model": "baseline/longest"})
    with pytest.raises(UsageError, match="model was baseline/random, is baseline/longest"):
        record_rerun(store, token, run, held, actor="ann")


def test_a_row_without_traces_and_too_small_a_sample_are_refused(wide, board, tmp_path):
    store, held, token = board
    with pytest.raises(UsageError, match="too few"):
        plan_rerun(store, token, cases=59, actor="ann")
    with pytest.raises(UsageError, match="bound"):
        plan_rerun(store, token, bound=0.9, actor="ann")
    bare = [json.loads(line) for line in (wide / "packed.jsonl").read_text().splitlines()]
    path = tmp_path / "bare.jsonl"
    path.write_text("".join(json.dumps({key: row[key] for key in ("title", "prediction")}) + "\n" for row in bare))
    scored = add_to_board(store, held, DirectSubmission(source=path, team="north", model="bare"), actor="ann")
    with pytest.raises(UsageError, match="no confirmed traces"):
        plan_rerun(store, scored.token, actor="ann")


def test_the_command_draws_and_settles(wide, board, tmp_path):
    from medthink.cli.board import board as board_group

    store, _, token = board
    place = ("--store", tmp_path / "board.sqlite", "--data", wide / "bench")
    planned = call_command(board_group, ["rerun", token, "--json", *place], catch_exceptions=False)
    plan = json.loads(planned.output)
    assert "--model baseline/random" in plan["command"] and len(plan["cases"]) == LEAST_CASES
    run = run_again(wide, tmp_path / "again", msgspec.convert({k: plan[k] for k in plan if k != "command"}, RerunPlan))
    settled = call_command(board_group, ["rerun", token, run, *place], catch_exceptions=False)
    assert settled.exit_code == 0 and "now partly re-run" in settled.output
    assert find_submission(store, token).provenance == "rerun"


@pytest.mark.parametrize(("found", "sample", "whole"), [(0, 60, 720), (3, 60, 720), (20, 60, 100), (60, 60, 60)])
def test_the_limit_is_the_last_share_that_the_sample_does_not_rule_out(found, sample, whole):
    most = round(finite_upper_bound(found, sample=sample, whole=whole, alpha=0.025) * whole)
    assert hypergeom.cdf(found, whole, most, sample) >= 0.025
    assert most == whole - sample + found or hypergeom.cdf(found, whole, most + 1, sample) < 0.025


def test_the_limit_holds_as_often_as_it_says():
    rng = np.random.default_rng(1)
    for marked in (30, 108, 300):
        drawn = rng.hypergeometric(marked, 720 - marked, 60, size=2000)
        limits = {int(found): finite_upper_bound(int(found), sample=60, whole=720, alpha=0.05) for found in set(drawn)}
        missed = sum(limits[int(found)] < marked / 720 for found in drawn)
        assert missed <= 130
