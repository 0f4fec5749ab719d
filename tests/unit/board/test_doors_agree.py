"""A comparison, a report, the board and a preview say the same about the same results, in whatever order they come."""

import json

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from ledger_rows import replace_predictions
from medthink.audit.rivals import rival_guesses
from medthink.audit.runs import audit_run
from medthink.board.moderation import publish
from medthink.board.packing import pack_run
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.board.queue import Upload, receive
from medthink.board.ranking import make_leaderboard
from medthink.board.submissions import find_submission
from medthink.board.worker import process_next
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.core.errors import UsageError
from medthink.report.guessing import audit_group, points_with_interval
from medthink.report.page import write_report
from medthink.report.runs import group_entries, load_entries
from medthink.runs.session import run as run_model
from medthink.scoring.comparable import rank_together
from medthink.scoring.compare import compare_paths
from medthink.scoring.score import score_run
from medthink.web.app.benchmarks import BenchmarkCache
from medthink.web.board.compare import compare_rows
from medthink.web.runs.accuracy import find_accuracy, find_gain
from medthink.web.runs.compare_page import compare_two_runs
from medthink.web.runs.index import RunIndex
from medthink.workflow.condition import Condition


def place(one) -> tuple[int, int, frozenset[str]]:
    return one.rank, one.worst, frozenset(one.letters)


def preview_of(store, held, entered, run, file, **fields):
    """The token of a run uploaded as a file, and what its team is shown before it publishes."""
    pack_run(run, file)
    token = receive(store, Upload(benchmark_id=entered.id, data=file.read_bytes(), **fields)).token
    process_next(store, {entered.id: held})
    return token, find_submission(store, token).preview


def test_every_door_ranks_the_same_runs_alike(store, held, entered, bench, tmp_path):
    models = {"random": "baseline/random", "longest": "baseline/longest", "majority": "baseline/majority"}
    runs = {name: run_model(bench, model=model, out=tmp_path / name).path for name, model in models.items()}
    compared = compare_paths(list(runs.values()))
    again = compare_paths(list(runs.values())[::-1])
    (group,) = group_entries(load_entries(list(runs.values())))
    pairs = [
        {(frozenset(names[k] for k in (pair.a, pair.b)), pair.p_value) for pair in ranking.pairs}
        for names, ranking in (
            (compared.runs, compared.ranking),
            (again.runs, again.ranking),
            ([str(one.path) for one in group.lettered], group.ranking),
        )
    ]
    assert pairs[0] == pairs[1] == pairs[2]
    for name in ("random", "longest"):
        add_to_board(store, held, DirectSubmission(source=runs[name], team="us"), actor="ann")
    token, preview = preview_of(
        store, held, entered, runs["majority"], tmp_path / "m.jsonl", team="us", model="majority"
    )
    publish(store, token, actor="ann")
    made = make_leaderboard(store, entered)
    assert made.thresholds["unaided"] == compared.ranking.threshold == group.ranking.threshold
    assert [place(row)[:2] for row in made.rows] == [place(one)[:2] for one in compared.ranking.runs]
    own = next(row for row in made.rows if row.submission.token == token)
    assert place(preview) == place(own)


def test_a_pair_is_refused_for_one_reason_on_the_board_and_in_a_comparison(store, held, entered, bench, tmp_path):
    models = {"random": Condition(), "longest": Condition(summary="expert")}
    runs = {
        name: run_model(bench, model=f"baseline/{name}", condition=condition, out=tmp_path / name).path
        for name, condition in models.items()
    }
    with pytest.raises(UsageError) as refused:
        compare_paths(list(runs.values()))
    for run in runs.values():
        add_to_board(store, held, DirectSubmission(source=run, team="us"), actor="ann")
    made = make_leaderboard(store, entered)
    told = compare_rows(made.rows[0], made.cued[0], {})
    assert told == "One of them was shown expert cues, and such runs can only be compared for the same model."
    assert told[1:-1] in refused.value.problem


def test_a_ranking_depends_on_the_answers_alone():
    rights = [[1.0, 1 / 3, 1.0, 0.0, 1.0, 2 / 3], [0.0, 1.0, 1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1 / 3, 1.0, 0.0, 0.0]]
    first = rank_together(rights, range(6))
    turned = rank_together([row[::-1] for row in rights[::-1]], range(5, -1, -1))
    assert turned.threshold == first.threshold
    assert {pair.p_value for pair in turned.pairs} == {pair.p_value for pair in first.pairs}


def test_a_preview_counts_the_blind_run_that_the_board_will_count(store, held, entered, bench, tmp_path):
    blind = run_model(bench, model="baseline/random", out=tmp_path / "blind", condition=Condition(image_share=0)).path
    seeing = run_model(bench, model="baseline/random", out=tmp_path / "seeing").path
    fields = {"team": "us", "model": "baseline/random"}
    token, _ = preview_of(store, held, entered, blind, tmp_path / "b.jsonl", **fields)
    publish(store, token, actor="ann")
    token, preview = preview_of(store, held, entered, seeing, tmp_path / "s.jsonl", **fields)
    publish(store, token, actor="ann")
    row = next(row for row in make_leaderboard(store, entered).rows if row.submission.token == token)
    assert row.gain.has_own_blind
    assert (preview.gain, preview.rival) == (row.gain.gain, row.gain.rival)


def test_every_door_tells_one_accuracy_one_difference_and_one_gain(store, held, entered, bench, tmp_path, capsys):
    runs = {
        name: run_model(
            bench, model="baseline/random", out=tmp_path / name, condition=Condition(image_share=share)
        ).path
        for name, share in (("blind", 0), ("seeing", 1))
    }
    # A baseline answers alike with and without images: here it is always A without.
    lines = [json.loads(line) for line in (runs["blind"] / "predictions.jsonl").read_text().splitlines()]
    written = "".join(f"{json.dumps(line | {'prediction': 'A', 'letter_shown': 'A'})}\n" for line in lines)
    replace_predictions(runs["blind"], written.encode())
    fields = {"team": "us", "model": "baseline/random"}
    token, _ = preview_of(store, held, entered, runs["blind"], tmp_path / "b.jsonl", **fields)
    publish(store, token, actor="ann")
    token, preview = preview_of(store, held, entered, runs["seeing"], tmp_path / "s.jsonl", **fields)
    publish(store, token, actor="ann")
    made = make_leaderboard(store, entered)
    rows = {
        name: next(row for row in (*made.rows, *made.partial) if (row.submission.token == token) == (name == "seeing"))
        for name in runs
    }

    (group,) = group_entries(load_entries(list(runs.values())))
    entries = {one.name: one for one in group.lettered}
    index = RunIndex([tmp_path], BenchmarkCache())
    indexed = {name: next(run for run in index.runs() if run.name == name) for name in runs}
    indexed["seeing"].bench.learn_rivals()
    accuracies = {
        name: [
            score_run(path).answers.accuracy,
            entries[name].accuracy,
            rows[name].scores.answers.accuracy,
            rounded(find_accuracy((indexed[name],)).accuracy),
        ]
        for name, path in runs.items()
    }
    for found in accuracies.values():
        assert found == [found[0]] * 4

    compared = compare_paths([runs["seeing"], runs["blind"]]).pairs[0]
    (ranked,) = group.ranking.pairs
    sign = 1 if group.lettered[ranked.a].name == "seeing" else -1
    differences = [
        compared.difference,
        turned(ranked.difference, sign),
        compare_rows(rows["seeing"], rows["blind"], {}).pairs[0].difference,
        compare_two_runs(indexed["seeing"], indexed["blind"]).pairs[0].difference,
        preview.difference,
    ]
    assert compared.won and compared.lost
    assert [ends(one) for one in differences] == [pytest.approx(ends(compared.difference))] * 5
    capsys.readouterr()
    assert run_command(["compare", str(runs["seeing"]), str(runs["blind"]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["difference"] == to_builtins(compared.difference)
    (audited,) = [audit for entry, audit in audit_group(group, trains=False).audits if entry.name == "seeing"]
    rival = audited.strongest_rival
    gains = [
        audited.diagnostic_gain,
        audit_run(
            score_run(runs["seeing"]), rival_guesses(Benchmark.open(bench), "test"), [score_run(runs["blind"])]
        ).diagnostic_gain,
        rows["seeing"].gain.gain,
        preview.gain,
        find_gain((indexed["seeing"], *indexed.values())),
    ]
    assert gains == [audited.diagnostic_gain] * 5
    standing = find_accuracy((indexed["seeing"], *indexed.values()))
    assert [rows["seeing"].gain.rival, preview.rival, standing.rival] == [rival] * 3
    html = write_report([*runs.values()], tmp_path / "report.html").read_text(encoding="utf-8")
    assert points_with_interval(audited.diagnostic_gain) in html


def rounded(measured):
    """As scores are when they are stored."""
    value, low, high = (round(one, 10) for one in (measured.value, measured.low, measured.high))
    return replace(measured, value=value, low=low, high=high)


def turned(measured, sign):
    return measured if sign > 0 else replace(measured, value=-measured.value, low=-measured.high, high=-measured.low)


def ends(measured):
    return measured.value, measured.low, measured.high
