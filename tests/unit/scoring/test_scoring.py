"""Scores are counted right, keep every state apart, and come out the same bytes each time."""

import json

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import made_runs
from ledger_rows import replace_predictions
from medthink.cases.benchmark import Benchmark
from medthink.cases.slices import SLICINGS, SMALL, sort_slices
from medthink.cli.command import run_command
from medthink.core.errors import DataError, UsageError
from medthink.metrics.radcliq.composite import Components, radcliq_v1
from medthink.metrics.registry import METRICS, score_pairs
from medthink.scoring.inputs import (
    ScoringInput,
    load_all,
    load_run,
)
from medthink.scoring.radcliq import RadCliQOptions
from medthink.scoring.score import score, score_answers, score_cases, score_run, score_slices
from medthink.scoring.scores import difference_text, rate_text, to_plain, value_text
from medthink.scoring.texts import score_texts
from medthink.stats.bootstrap import bootstrap_mean
from medthink.stats.estimate import Estimate, Undefined
from medthink.stats.intervals import wilson
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction
from medthink.workflow.written_text import TextPair, discussion_pairs, finding_pairs, section_pairs


def material(bench, predictions) -> ScoringInput:
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    return ScoringInput("made up", None, "f", {one.case: cases[one.case] for one in predictions}, predictions)


def answer(case: int, state: str = "ok", right: bool = True, sample: int = 0, **more) -> Prediction:
    gold = "ABCDE"[case % 5]
    letter = (gold if right else "ABCDE"[(case + 1) % 5]) if state == "ok" else None
    return Prediction(case=case, split="test", sample=sample, state=state, prediction=letter, **more)


def test_the_headline_counts_every_state_and_the_second_figure_leaves_the_unanswered_out(bench):
    states = ["ok"] * 6 + ["unparsed", "refused", "truncated", "failed"]
    predictions = [answer(100 + n, state, right=n < 4) for n, state in enumerate(states)]
    scores = score_answers(material(bench, predictions))
    assert scores.states == {"ok": 6, "unparsed": 1, "refused": 1, "truncated": 1, "failed": 1}
    assert scores.accuracy == wilson(4, 10)
    assert scores.accuracy_answered == wilson(4, 6)


def test_letters_chosen_are_counted_as_they_were_shown(bench):
    predictions = [answer(100), answer(101, letter_shown="E"), answer(102, "refused", letter_shown="D")]
    scores = score_answers(material(bench, predictions))
    assert scores.chosen == {"A": 1, "E": 1}
    assert scores.confusion == {"A": {"A": 1}, "B": {"B": 1}, "C": {"refused": 1}}


@pytest.mark.parametrize(("cases", "is_small"), [(SMALL - 1, True), (SMALL, False)])
def test_a_slice_is_small_below_thirty_cases(bench, cases, is_small):
    made = material(bench, [answer(100 + n) for n in range(cases)])
    (one,) = [part for part in score_slices(made.cases, score_cases(made)) if part.n == cases and part.by == "modality"]
    assert one.is_small is is_small


def test_text_scores_weigh_cases_alike_and_draw_them_whole():
    words = ("a nodule in the lung", "a nodule", "no mass", "words without any finding")
    pairs = [
        TextPair(f"{case}/0/{slot}", case, "ok", words[0], words[(case + slot) % 4], "CT")
        for case in range(12)
        for slot in range(1 + case % 3)
    ]
    made = score_texts("findings", pairs, rng=np.random.default_rng(3))
    scored, means = {one.metric: one.value for one in made.metrics}, made.case_values
    expected = bootstrap_mean(list(means["rouge1"].values()), clusters=range(12), rng=np.random.default_rng(3))
    assert (scored["rouge1"].value, scored["rouge1"].low, scored["rouge1"].high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-12
    )
    # Cases without a value are in no mean, nor in the draws of one.
    known = list(means["finding_precision"].values())
    precision = scored["finding_precision"]
    assert 1 < precision.n == len(known) < 12
    assert precision.value == pytest.approx(sum(known) / len(known))
    assert precision.low < precision.value < precision.high <= 1


def test_several_samples_are_one_case_each(bench):
    predictions = [answer(100 + n, right=n % 2 == 0, sample=s) for n in range(10) for s in range(3)]
    scores = score_answers(material(bench, predictions))
    assert (scores.n_cases, scores.n_predictions) == (10, 30)
    assert scores.accuracy.value == pytest.approx(0.5)
    assert scores.accuracy.clusters == 10
    assert scores.consistency == 1.0
    assert scores.majority == wilson(5, 10)


@pytest.mark.parametrize("cases", [2, 3, 8])
def test_accuracy_over_samples_stays_between_0_and_100_percent(bench, cases):
    made = material(bench, [answer(100 + n, right=n > 0 or s > 0, sample=s) for n in range(cases) for s in range(3)])
    answers, scored = score_answers(made), score_cases(made)
    rates = [answers.accuracy, answers.repeats.mean, *(one.accuracy for one in score_slices(made.cases, scored))]
    estimates = [rate for rate in rates if isinstance(rate, Estimate)]
    assert answers.accuracy in estimates
    assert all(0 <= rate.low < rate.value <= rate.high <= 1 for rate in estimates)


def test_samples_that_are_all_right_have_an_interval_too(bench):
    scores = score_answers(material(bench, [answer(100 + n, sample=s) for n in range(10) for s in range(3)]))
    assert scores.accuracy.value == 1
    assert scores.accuracy.low == pytest.approx(wilson(10, 10).low, abs=0.07)


def test_slices_cover_all_cases_and_mark_small_ones(bench):
    predictions = [answer(100 + n, right=n < 20) for n in range(40)]
    made = material(bench, predictions)
    slices = score_slices(made.cases, score_cases(made))
    by_longitudinal = [one for one in slices if one.by == "longitudinal"]
    assert sum(one.n for one in by_longitudinal) == 40
    assert {one.is_small for one in slices if one.n < 30} <= {True}
    assert {one.by for one in slices} == set(SLICINGS)


def test_slices_stand_in_the_order_of_their_numbers():
    groups = {("images per case", value): [0] for value in ("17–49", "1–4", "none", "9–16", "5–8")}
    assert [value for _, value in sort_slices(groups)] == ["none", "1–4", "5–8", "9–16", "17–49"]


def test_a_run_scores_to_the_same_bytes_whatever_the_order_of_its_lines(make_run, twi):
    run = make_run("run", model="baseline/retrieval", **twi)
    score_run(run)
    before = (run / "scores.json").read_bytes()
    lines = (run / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    replace_predictions(run, b"".join(reversed(lines)))
    score_run(run)
    assert (run / "scores.json").read_bytes() == before
    assert json.loads(before)["answers"]["n_cases"] == 40


def test_steps_are_scored_per_image_and_missing_findings_are_a_state(bench):
    full = answer(100, slots=(1, 2), prediction_twi=None)
    steps = {"step1_per_image_findings": ["WITHHELD caption 101.1", None], "step2_integrated_summary": " ",
             "step3_differential_reasoning": "x"}  # fmt: skip
    partial = msgspec.convert(
        {"case": 101, "split": "test", "sample": 0, "state": "ok", "slots": [1, 2], "prediction_twi": steps}, Prediction
    )
    made = material(bench, [full, partial])
    states = [(pair.case, pair.state) for pair in made.pairs(finding_pairs)]
    assert states == [(100, "missing"), (100, "missing"), (101, "ok"), (101, "missing")]
    scored = {one.step: one for one in score(made).steps}
    assert scored["findings"].states == {"missing": 3, "ok": 1}
    assert scored["summary"].states == {"empty": 1, "missing": 1}
    rouge = {one.metric: one for one in scored["findings"].metrics}["rouge1"]
    # Written in one of two cases, and there for one of two images; of what was written, all is right.
    assert (rouge.value.value, rouge.value.n) == (0.25, 2)
    assert rouge.of_written == Undefined(reason="one case shows no spread", n=1, value=1.0)


def test_leaving_texts_out_never_helps_in_any_metric(tmp_path):
    table = tmp_path / "components.csv"
    rows = [f"{case}/0/1,0.5,0.5,0.5,0.5" for case in range(15)]
    table.write_text("\n".join(["id,radgraph,bertscore,semb,bleu", *rows]) + "\n")
    reference, written = "There is a mass in the liver.", "There is a mass in the liver. No cyst."
    found = {}
    for state in ("missing", "empty", "ok"):
        pairs = [TextPair(f"{case}/0/1", case, "ok", reference, written, "CT") for case in range(5)]
        text = written if state == "ok" else ""
        pairs += [TextPair(f"{case}/0/1", case, state, reference, text, "CT") for case in range(5, 15)]
        made = score_texts("findings", pairs, rng=np.random.default_rng(1), radcliq=RadCliQOptions(components=table))
        found[state] = {one.metric: one for one in made.metrics}
    for name, metric in found["ok"].items():
        assert metric.of_written == metric.value
        for state in ("missing", "empty"):
            value = found[state][name].value.value
            # A text that states nothing has no precision, and contradicts nothing.
            if metric.direction != "neither" and name not in (
                "finding_precision",
                "finding_conflicts",
                "radcliq.bleu2",
            ):
                assert value > metric.value.value if metric.direction == "lower" else value < metric.value.value, name
            assert found[state][name].of_written.value == pytest.approx(metric.value.value)
    full = radcliq_v1(Components(0.5, 0.5, 0.5, 0.5))
    assert found["missing"]["radcliq_v1"].value.value == pytest.approx((5 * full + 10 * 2.4501430833) / 15)


def test_radcliq_is_computed_from_given_components_or_says_why_not(make_run, twi, tmp_path):
    run = make_run("run", model="baseline/retrieval", **twi)
    plain = {one.metric: one for one in score_run(run).steps[1].metrics}
    assert "--radcliq" in plain["radcliq_v1"].not_computed
    asked = {one.metric: one for one in score_run(run, radcliq=RadCliQOptions(weights=tmp_path)).steps[1].metrics}
    assert asked["radcliq_v1"].value is None
    assert asked["radcliq_v1"].not_computed
    ids = [f"{case}/0" for case in range(100, 140)] + [
        f"{case}/0/{slot}" for case in range(100, 140) for slot in (1, 2)
    ]
    table = tmp_path / "components.csv"
    rows = [f"{name},1,1,1,1" for name in ids]
    table.write_text("id,radgraph,bertscore,semb,bleu2\n" + "\n".join(rows) + "\n")
    summary = score_run(run, radcliq=RadCliQOptions(components=table)).steps[1]
    given = {one.metric: one for one in summary.metrics}
    assert given["radcliq_v0"].value.value == pytest.approx(-0.24213342294409346)
    assert given["radcliq_v1"].value.value == pytest.approx(-1.4406902828047017)
    assert summary.radcliq == {"precomputed": {"source": "components.csv"}}
    kept = json.loads((run / "scores.json").read_text())["steps"][1]
    assert kept["radcliq"] == summary.radcliq


def test_scores_without_radcliq_say_nothing_of_what_made_it(make_run, twi):
    run = make_run("run", model="baseline/retrieval", **twi)
    score_run(run)
    assert "radcliq" not in json.loads((run / "scores.json").read_text())["steps"][1]


def test_a_run_is_scored_by_the_metrics_that_are_registered():
    references = ["A 12 mm nodule in the right upper lobe. No effusion.", "Oedema of the left frontal lobe.", "Words."]
    candidates = ["A 30 mm nodule in the right upper lobe.\nAn effusion.", "Edema of the left frontal lobe.", "Others."]
    columns = score_pairs(references, candidates)
    assert columns == {name: list(METRICS[name].function(references, candidates)) for name in columns}
    assert columns["rougeL_norm"][1] == 1.0 > columns["rougeL"][1]
    assert columns["finding_conflicts"] == [2.0, 0.0, 0.0]


def test_hidden_options_have_no_letters_and_no_score(bench, tmp_path):
    scores = score_run(made_runs.make_run(tmp_path / "run", bench, show_options=False))
    assert scores.answers is None
    assert "not scored" in scores.notes[0]


def test_expert_cues_and_swapped_images_are_said(make_run):
    cued = score_run(make_run("cued", condition=Condition(summary="expert")))
    assert cued.origin.kind == "expert-cued"
    assert any("not to be ranked" in note for note in cued.notes)


def test_a_discussion_is_scored_by_section(bench, tmp_path):
    scores = score_run(made_runs.make_run(tmp_path / "run", bench, task="discussion"))
    (discussion,) = scores.steps
    assert scores.answers is None
    assert discussion.metrics[0].metric == "section_coverage"


def test_sections_that_are_not_on_both_sides_are_states_and_not_zeros(bench):
    written = answer(100, discussion={"background": "A rare mass.", "outcome": " ", "teaching_points": "Look twice."})
    made = material(bench, [written])
    reference = replace(
        made.cases[100].reference, discussion="Background\nA mass.\nOutcome\nGood.\nClinical features\nX."
    )
    made.cases[100] = replace(made.cases[100], reference=reference)
    assert {pair.group: pair.state for pair in made.pairs(section_pairs)} == {
        "background": "ok",
        "clinical_perspective": "missing",
        "imaging_perspective": "not in reference",
        "clinical_significance": "not in reference",
        "outcome": "empty",
        "teaching_points": "not in reference",
    }


def with_discussion(made, text):
    reference = replace(made.cases[100].reference, discussion=text)
    made.cases[100] = replace(made.cases[100], reference=reference)
    return made


@pytest.fixture
def discussed(bench, tmp_path):
    return made_runs.make_run(tmp_path / "run", bench, task="discussion")


def score_discussion(run, reference, **sections):
    made = load_run(run)
    made = with_discussion(made, reference)
    return score(made._replace(cases={100: made.cases[100]}, predictions=[answer(100, discussion=sections)]))


def test_a_discussion_without_headings_is_scored_as_a_whole_text(discussed):
    scores = score_discussion(discussed, "A rare mass. Good.", background="A rare mass.", outcome="Good.")
    (step,) = scores.steps
    values = {one.metric: one.value for one in step.metrics}
    assert step.states == {"ok": 1} and values["rougeL"].value == 1.0
    assert values["section_coverage"].value is None and step.by_group == {} and step.group_states == {}
    assert any("1 of 1 reference discussions have no section headings" in note for note in scores.notes)
    assert "no reference" not in str(msgspec.to_builtins(scores))


def test_whole_texts_are_compared_without_their_headings_and_sections_beside(discussed):
    expert = "Background\nA rare mass.\nOutcome\nBad."
    scores = score_discussion(discussed, expert, background="A rare mass.", outcome="Good.")
    (step,) = scores.steps
    whole = {one.metric: one.value for one in step.metrics}["rouge1"].value
    parts = {name: {m.metric: m.value for m in one}["rouge1"].value for name, one in step.by_group.items()}
    assert whole == 0.75 and parts == {"background": 1.0, "outcome": 0.0}
    assert step.group_states == {"not in reference": 4, "ok": 2}
    assert not any("headings" in note for note in scores.notes)


def test_a_discussion_that_never_came_is_missing_and_an_expert_who_wrote_none_is_no_reference(bench):
    made = material(bench, [answer(100, discussion=None)])
    assert [pair.state for pair in with_discussion(made, "Plain.").pairs(discussion_pairs)] == ["missing"]
    assert [pair.state for pair in with_discussion(made, " ").pairs(discussion_pairs)] == ["no reference"]


def test_a_changed_benchmark_is_refused(make_run, bench, tmp_path):
    run = make_run("run")
    other = tmp_path / "other"
    other.mkdir()
    for split in ("train", "test"):
        text = (bench / f"{split}.jsonl").read_text().replace("Disease A100", "Disease Z100")
        (other / f"{split}.jsonl").write_text(text)
    with pytest.raises(UsageError, match="not the benchmark"):
        load_run(run, other)


def submission(bench, path, **changes):
    lines = []
    for case in Benchmark.open(bench)["test"]:
        row = {"title": case.title, "correct_answer": "A", "prediction": case.reference.answer} | changes
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_submission_is_scored_by_our_key_not_by_its_own(bench, tmp_path):
    scores = score(load_all([submission(bench, tmp_path / "p.jsonl")], bench)[0])
    assert scores.answers.accuracy.value == 1.0
    forged = submission(bench, tmp_path / "q.jsonl", prediction="A")
    assert score(load_all([forged], bench)[0]).answers.accuracy.value == 0.2


def test_a_submission_that_lacks_cases_counts_them_as_failed(bench, tmp_path):
    path = submission(bench, tmp_path / "p.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:30]))
    answers = score(load_all([path], bench)[0]).answers
    assert answers.states["failed"] == 10
    assert answers.accuracy.value == 0.75


def test_the_findings_of_cases_that_a_submission_lacks_are_missing_too(bench, tmp_path):
    steps = {"step1_per_image_findings": ["x"], "step2_integrated_summary": "x", "step3_differential_reasoning": "x"}
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"case": 100, "prediction": "A", "prediction_twi": steps}) + "\n")
    images = sum(len(case.question.images) for case in Benchmark.open(bench)["test"])
    findings, summary = score(load_all([path], bench)[0]).steps
    assert findings.states == {"missing": images - 1, "ok": 1}
    assert summary.states == {"missing": 39, "ok": 1}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"title": "Case number 100", "prediction": "A"}', "two lines for sample 0"),
        ('{"title": "Case number 999", "prediction": "A"}', "no such case"),
        ('{"prediction": "A"}', "no case number"),
        ('{"case": 10.1, "prediction": "A"}', "no case number"),
        ('{"case": null, "title": "Case number 101", "prediction": "A"}', "no case number"),
        ('{"title": "Case number 10 (1)", "prediction": "A"}', "no case number"),
        ('{"title": "Case number ' + "9" * 5000 + '", "prediction": "A"}', "no case number"),
        ('{"case": -101, "prediction": "A"}', "no such case"),
        ('{"case": 101, "sample": "1", "prediction": "A"}', "not the number of a sample"),
        ('[1]', "must be an object"),
        ('{"title": "Case number 101", "prediction": "A", "prediction_twi": "x"}', "not the three steps"),
    ],
)  # fmt: skip
def test_a_bad_submission_is_refused_with_file_and_line(bench, tmp_path, line, problem):
    path = tmp_path / "p.jsonl"
    path.write_text('{"title": "Case number 100", "prediction": "B"}\n' + line + "\n")
    with pytest.raises(DataError, match=problem) as caught:
        load_all([path], bench)[0]
    assert "p.jsonl:2" in str(caught.value)


def test_numbers_are_written_with_their_interval_or_not_at_all():
    estimate = Estimate(value=0.5, low=0.4, high=0.6, level=0.95, n=10, clusters=10, method="x")
    nothing = Undefined(reason="no rows", n=0)
    assert rate_text(estimate) == "50.0 % (40.0–60.0)"
    assert value_text(estimate) == "0.500 (0.400–0.600)"
    assert value_text(replace(estimate, value=-0.1, low=-0.25, high=0.05)) == "−0.100 (−0.250 to 0.050)"
    assert difference_text(estimate) == "+50.0 points (+40.0 to +60.0)"
    assert rate_text(nothing) == value_text(nothing) == difference_text(nothing) == "–"
    assert "no interval" in rate_text(Undefined(reason="one case", n=1, value=1.0))


def test_plain_scores_are_rounded(make_run):
    plain = to_plain(score_run(make_run("run")))
    text = json.dumps(plain)
    assert not any(
        len(part.split(".")[-1]) > 12
        for part in text.replace(",", " ").replace("}", " ").split()
        if "." in part and part[0].isdigit()
    )


def test_the_command_shows_what_repeated_answers_say(make_run, capsys):
    run = make_run("run", condition=Condition(samples=3))
    assert run_command(["score", str(run)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "120 answers to 40 cases" in shown
    assert "majority vote" in shown
