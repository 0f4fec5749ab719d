"""Runs are compared pair by pair on the same cases, or refused."""

import json
import re

import msgspec
import numpy as np
import pytest

from ledger_rows import replace_predictions
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.core.errors import UsageError
from medthink.core.numbers import as_p_value
from medthink.runs.selection import Selection
from medthink.scoring.comparable import rank_together
from medthink.scoring.compare import compare_paths, compare_runs, detectable_difference
from medthink.scoring.inputs import load_run
from medthink.scoring.score import cached_scores, score_run
from medthink.scoring.scores import CaseScore, ScoredSource, Scores, difference_text, rate_text, size_text
from medthink.scoring.tables import ranking_note
from medthink.stats.comparisons.paired import mcnemar_p
from medthink.stats.estimate import Estimate, Undefined
from medthink.stats.intervals import rate_interval
from medthink.workflow.condition import Condition


def test_a_comparison_is_paired_and_antisymmetric(make_run, bench):
    runs = [score_run(make_run(name, model=f"baseline/{name}")) for name in ("random", "longest")]
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    one, two = (compare_runs(pair, cases).pairs[0] for pair in (runs, runs[::-1]))
    assert one.won == two.lost
    assert one.difference.value == pytest.approx(-two.difference.value)
    assert one.p_value == two.p_value == mcnemar_p(len(one.won), len(one.lost))
    right = {scores.origin.name: {c.case for c in scores.cases if c.right} for scores in runs}
    assert set(one.won) == right[one.a] - right[one.b]


def test_pairs_and_slices_are_corrected_for_all_that_are_looked_at(make_run, bench):
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    runs = [score_run(make_run(name, model=f"baseline/{name}")) for name in ("random", "longest", "majority")]
    three, two = compare_runs(runs, cases), compare_runs(runs[:2], cases)
    assert [pair.p_value for pair in three.pairs] == [pair.p_value for pair in three.ranking.pairs]
    assert three.pairs[0].p_value >= two.pairs[0].p_value
    for pair in three.pairs:
        assert len(pair.slices) > 1
        assert all(one.is_different == (one.p_value <= 0.05) for one in pair.slices)
        for one in pair.slices:
            if isinstance(one.difference, Estimate):
                assert one.is_different == (not one.difference.low <= 0 <= one.difference.high)


def outcomes(right, name):
    """Scores that hold no more than which cases are right."""
    rows = tuple(
        CaseScore(case=k, right=float(hit), states=("ok",), letters=("A",), gold="A") for k, hit in enumerate(right)
    )
    return Scores(
        package="0",
        origin=ScoredSource(
            name=name, model=name, task="answer", kind="unaided", condition=None, condition_label="", split="test",
            selection=None, fingerprint=None, text_fingerprint="0", prompts={}, reported_models=(),
        ),
        answers=None,
        steps=(),
        slices=(),
        usage=None,
        notes=(),
        cases=rows,
    )  # fmt: skip


def test_a_clear_difference_is_seen_among_33_runs():
    # Holm over 528 Monte-Carlo p-values could not call a pair of 50:3 different: 0.053.
    rng = np.random.default_rng(3)
    rights = (rng.random((33, 200)) < 0.5).astype(float)
    rights[1, 53:] = rights[0, 53:]
    rights[0, :53], rights[1, :53] = np.repeat([1, 0], [50, 3]), np.repeat([0, 1], [50, 3])
    made = compare_runs([outcomes(row, f"r{k}") for k, row in enumerate(rights)], {})
    pair = made.pairs[0]
    assert (pair.a, pair.b, len(pair.won), len(pair.lost)) == ("r0", "r1", 50, 3)
    assert pair.is_different and pair.p_value == made.p_floor < 0.0001
    assert pair.resolution.threshold == made.ranking.threshold


def test_runs_that_differ_in_kind_or_cases_are_refused(make_run, bench, some_cases):
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    blind = score_run(make_run("blind"))
    fewer = score_run(make_run("fewer", selection=some_cases))
    cued = score_run(make_run("cued", model="baseline/longest", condition=Condition(summary="expert")))
    own_cued = score_run(make_run("own", condition=Condition(summary="expert")))
    with pytest.raises(UsageError, match="selection of cases"):
        compare_runs([blind, fewer], cases)
    with pytest.raises(UsageError, match="shown expert cues"):
        compare_runs([blind, cued], cases)
    assert compare_runs([blind, own_cued], cases).differing["kind"] == ("unaided", "expert-cued")


def test_every_pair_of_a_comparison_must_be_comparable(make_run, bench):
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    blind, other = (score_run(make_run(name, model=f"baseline/{name}")) for name in ("random", "longest"))
    cued = score_run(make_run("cued", model="baseline/random", condition=Condition(summary="expert")))
    with pytest.raises(UsageError, match="shown expert cues"):
        compare_runs([blind, cued, other], cases)
    with pytest.raises(UsageError, match="given twice"):
        compare_runs([blind, other, blind], cases)


def test_blind_and_cued_runs_of_one_model_are_paired_but_not_ranked(make_run, bench):
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    blind = [score_run(make_run(f"blind{k}", condition=Condition(option_order=k))) for k in (1, 2)]
    cued = score_run(make_run("cued", condition=Condition(summary="expert")))
    comparison = compare_runs([*blind, cued], cases)
    assert (len(comparison.pairs), comparison.ranking) == (3, None)


def test_three_runs_on_one_case_are_all_leaders(make_run, bench):
    chosen = Selection(split="test", limit=1)
    runs = [score_run(make_run(f"r{k}", selection=chosen, condition=Condition(option_order=k))) for k in (1, 2, 3)]
    ranking = compare_runs(runs, {case.id: case for case in Benchmark.open(bench)["test"]}).ranking
    assert [(one.rank, one.worst, one.is_leader) for one in ranking.runs] == [(1, 3, True)] * 3


def test_a_ranked_run_has_the_interval_of_its_score(make_run, bench):
    runs = [score_run(make_run(f"r{k}", condition=Condition(option_order=k))) for k in (1, 2, 3)]
    comparison = compare_runs(runs, {case.id: case for case in Benchmark.open(bench)["test"]})
    assert [one.mean for one in comparison.ranking.runs] == [
        runs[one.run].answers.accuracy for one in comparison.ranking.runs
    ]


def test_what_can_be_seen_grows_with_the_samples_of_a_case():
    rng = np.random.default_rng(5)
    chances = rng.random(2000)
    found = {
        samples: detectable_difference(*(rng.binomial(samples, chances) / samples for _ in "ab")).difference
        for samples in (1, 16)
    }
    # Two runs of one skill differ from case to case by the chance of their samples alone.
    assert found[16] == pytest.approx(found[1] / 4, rel=0.1)
    assert isinstance(detectable_difference([1.0, 0.5], [1.0, 0.5]), Undefined)


def test_a_submission_file_differs_in_nothing_it_does_not_say(make_run, bench):
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    run = score_run(make_run("r"))
    file = msgspec.structs.replace(
        run, origin=msgspec.structs.replace(run.origin, name="theirs", task="submission", condition=None, prompts={})
    )
    assert set(compare_runs([run, file], cases).differing) == {"task"}


def test_what_differs_is_in_the_open(make_run, bench):
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    runs = [score_run(make_run(f"r{k}", condition=Condition(option_order=k))) for k in (1, 2, 3)]
    comparison = compare_runs(runs, cases)
    assert comparison.differing == {"option_order": ("1", "2", "3")}
    assert len(comparison.pairs) == 3
    assert len(comparison.ranking.runs) == 3


def test_the_command_names_every_pair_and_says_what_could_be_seen(make_run, capsys):
    chosen = Selection(split="test", limit=3)
    conditions = [Condition(), Condition(seed=1), Condition(option_order=1)]
    runs = [make_run(f"r{k}", selection=chosen, condition=one) for k, one in enumerate(conditions)]
    assert run_command(["compare", *map(str, runs)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for pair in ("r0 − r1", "r0 − r2", "r1 − r2"):
        assert f"{pair}:" in shown
    assert "too few cases for any difference" in shown
    assert "no slice has enough cases" in shown and "none of 0 slices" not in shown


def test_the_command_shows_flips_and_ranks_by_name(make_run, bench, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("medthink.cli.results.compare._SHOWN_CASES", 2)
    paths = [make_run(name, model=f"baseline/{name}") for name in ("random", "longest", "majority")]
    made = compare_runs([score_run(path) for path in paths], {case.id: case for case in Benchmark.open(bench)["test"]})
    assert run_command(["compare", *map(str, paths)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for pair in made.pairs:
        names = " − ".join(run.rsplit("/", 1)[-1] for run in (pair.a, pair.b))
        counts = f"{len(pair.won)} : {len(pair.lost)} {as_p_value(pair.p_value, made.p_floor)}"
        assert f"{names} {difference_text(pair.difference)} {counts}" in shown
        assert f"won: {', '.join(map(str, pair.won[:2]))} and {len(pair.won) - 2} more lost: {pair.lost[0]}," in shown
    for one in made.ranking.runs:
        assert f"{paths[one.run].name} {rate_text(one.mean)}" in shown


def test_a_comparison_keeps_what_was_scored_before(make_run):
    runs = [make_run(f"r{k}", condition=Condition(option_order=k)) for k in (1, 2)]
    score_run(runs[0])
    before = (runs[0] / "scores.json").stat().st_mtime_ns
    assert run_command(["compare", *map(str, runs)]) == 0
    assert (runs[0] / "scores.json").stat().st_mtime_ns == before


def test_scores_just_made_are_those_read_later(make_run):
    run = make_run("run", condition=Condition(samples=3))
    material = load_run(run)
    made = score_run(run)
    assert cached_scores(run, material) == made
    assert any(0 < one.right < 1 for one in made.cases)


def test_a_run_that_was_moved_goes_by_its_new_name(make_run, tmp_path):
    run = make_run("run")
    score_run(run)
    moved = run.rename(tmp_path / "moved")
    assert cached_scores(moved, load_run(moved)).origin.name == str(moved)


def test_scores_of_another_benchmark_are_made_again(make_run):
    run = make_run("run")
    made = score_run(run)
    kept = run / "scores.json"
    kept.write_text(
        kept.read_text().replace(made.origin.text_fingerprint, "0" * 64).replace('"n_cases": 40', '"n_cases": 7')
    )
    assert cached_scores(run, load_run(run)) == made


def test_many_runs_are_shown_by_their_ranks_and_what_a_tie_means(make_run, capsys):
    runs = [make_run(f"r{k}", condition=Condition(seed=k), model="baseline/random") for k in range(7)]
    assert run_command(["compare", *map(str, runs)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "40 cases, 7 runs: 0 of 21 pairs differ" in shown
    assert "too few cases to show any difference" in shown
    assert "not that the runs are equal" in shown
    assert "won:" not in shown


@pytest.mark.parametrize(
    ("p", "floor", "shown"), [(0.03125, 0, "0.0312"), (1e-9, 0, "< 0.0001"), (1 / 20_001, 1 / 20_001, "< 0.0001"),
    (0.001, 0.001, "< 0.001"), (1.0, 0, "1")],
)  # fmt: skip
def test_a_p_value_at_its_floor_is_printed_as_less(p, floor, shown):
    assert as_p_value(p, floor) == shown


@pytest.mark.parametrize(("cases", "samples"), [(90, 16), (720, 6), (8067, 2)])
def test_a_difference_in_one_sample_of_many_is_compared(cases, samples):
    other = np.ones(cases)
    other[0] -= 1 / samples
    made = compare_runs([outcomes(right, name) for right, name in ((np.ones(cases), "a"), (other, "b"))], {})
    (pair,) = made.pairs
    assert pair.difference.value == pytest.approx(1 / samples / cases) and not pair.is_different
    assert isinstance(pair.resolution, Undefined)


def test_the_verdict_of_a_pair_is_the_power_of_its_own_test(make_run, bench):
    runs = [outcomes(row, f"r{k}") for k, row in enumerate(np.random.default_rng(1).random((3, 200)) < 0.6)]
    assert compare_runs(runs[:2], {}).pairs[0].resolution.threshold is None
    three = compare_runs(runs, {})
    assert {pair.resolution.threshold for pair in three.pairs} == {three.ranking.power_z}


def test_the_command_counts_answers_by_state(make_run, capsys):
    runs = [make_run(name, model=f"baseline/{name}") for name in ("random", "longest")]
    refusing(runs[0], 3)
    capsys.readouterr()
    assert run_command(["compare", *map(str, runs)]) == 0
    assert re.search(r"answers +37 ok, 3 refused +40 ok", capsys.readouterr().out)
    assert run_command(["compare", *map(str, runs), str(make_run("majority", model="baseline/majority"))]) == 0
    assert "no letter" in (shown := capsys.readouterr().out) and "3 refused" in shown


def refusing(path, count):
    """Turn the first answers of a run into refusals, as if a provider had refused them."""
    lines = [json.loads(line) for line in (path / "predictions.jsonl").read_text().splitlines()]
    for line in lines[:count]:
        line |= {"state": "refused", "prediction": None}
        line.pop("letter_shown", None)
    replace_predictions(path, "".join(f"{json.dumps(line)}\n" for line in lines).encode())


def test_runs_that_ask_the_same_of_one_model_are_offered_as_samples(make_run, bench, capsys):
    runs = [make_run(name, condition=Condition(samples=3)) for name in ("first", "second")]
    other = make_run("other", condition=Condition(image_share=0.5, samples=3))
    capsys.readouterr()
    assert run_command(["compare", *map(str, (*runs, other))]) == 0
    (found,) = compare_paths((*runs, other)).samples
    assert found.runs == tuple(map(str, runs))
    cases = [case for run in runs for case in score_run(run).cases]
    rows = [(case.case, letter == case.gold) for case in cases for letter in case.letters]
    expected = rate_interval([hit for _, hit in rows], clusters=[number for number, _ in rows])
    assert (found.accuracy.value, found.accuracy.low) == pytest.approx((expected.value, expected.low))
    told = (
        f"first and second asked the same of one model: as samples of one run, its accuracy is {rate_text(expected)}."
    )
    assert told in " ".join(capsys.readouterr().out.split())
    assert compare_paths((runs[0], other)).samples == ()


def test_tiers_are_explained_only_where_there_are_two():
    rng = np.random.default_rng(3)
    good, plain, same = [(rng.random(200) < skill).astype(float) for skill in (0.9, 0.5, 0.5)]

    def note(*rights):
        compared = compare_runs([outcomes(right, f"run {k}") for k, right in enumerate(rights)], {})
        return ranking_note(msgspec.structs.replace(compared, ranking=rank_together(rights, range(200))))

    assert "Every run of a tier is shown to be better (95 %) than all of the next" in note(good, plain, same)
    assert "tier" not in note(plain, same, plain)


def test_equal_runs_keep_their_order_whatever_the_last_digits_say():
    thirds = [round(2 / 3, 10)] * 3 + [0.0] * 3
    whole = [1.0, 1.0, 0.0] + [0.0] * 3
    for rights in ([thirds, whole, whole], [whole, thirds, whole]):
        assert [one.run for one in rank_together(rights, range(6)).runs] == [0, 1, 2]


def test_a_difference_that_is_shown_is_never_written_as_0():
    gap = Estimate(value=0.0004, low=0.0001, high=0.0007, level=0.95, n=9, clusters=9, method="")
    assert size_text(gap) == "0.04 points"
    assert size_text(msgspec.structs.replace(gap, value=-0.027, low=-0.08, high=0.02)) == "2.7 points"
