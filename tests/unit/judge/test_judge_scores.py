"""What judgements add up to, against figures worked out by hand."""

import random
from pathlib import Path

import msgspec
import pytest

from medthink.judge.judged import (
    JudgedRun,
    count_votes,
    merge_judgements,
    panel_judgements,
    panel_votes,
    read_judgements,
    write_judgements,
)
from medthink.judge.judgement import Judgement, JudgeSettings, label_judges, model_identity, name_judges
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.discussion import EducationVerdict, SentenceVerdict
from medthink.judge.kinds.findings import StatementVerdict
from medthink.judge.kinds.step_scores import StepVerdict, step_tables
from medthink.judge.prompts import prompt_version
from medthink.judge.rubric import DIMENSIONS, WEIGHTS
from medthink.judge.scores import (
    by_judge_config,
    clustered_mean,
    majority_label,
    measure_coverage,
    pairwise_disagreement,
)
from medthink.judge.units import Unit, UnitSet
from medthink.metrics.findings.lexicon import is_hedged
from medthink.stats import mean_interval, rate_interval

SETTING = JudgeSettings(sees=("history",))


def step(number: int, factual: str = "supported", *types: str, critical: bool = False) -> StepVerdict:
    return StepVerdict(
        id=f"u{number}",
        factual=factual,
        weight="decisive" if critical else "incidental",
        critical=critical,
        error_types=types,
        severity="dangerous" if factual == "contradicted" else None,
        reason="so",
        rests_on=("history",),
    )


def judged(case: int, *steps: StepVerdict, judge: str = "openai/a", **changes) -> Judgement:
    fields = {
        "case": case, "sample": 0, "what": "steps", "judge": judge, "repeat": 0, "state": "ok", "setting": SETTING,
        "prompt": "p", "verdicts": steps,
    }  # fmt: skip
    return Judgement(**(fields | changes))


def score_steps(rows, units, *, rights, slices):
    return KINDS["steps"].score_with_slices(rows, units, rights, slices)


def units(*cases: int, state: str = "ok", what: str = "steps") -> dict:
    sets = [UnitSet(case=case, sample=0, what=what, state=state, splitter="sentences", texts="t") for case in cases]
    return {one.key: one for one in sets}


def worded(text: str, *cases: int) -> dict:
    """The units of three steps that all have these words."""
    steps = tuple(Unit(f"u{k}", "rationale", 0, len(text), text) for k in (1, 2, 3))
    return {key: msgspec.structs.replace(one, units=steps) for key, one in units(*cases).items()}


ROWS = [
    judged(1, step(1), step(2, "contradicted", "image_understanding", critical=True), step(3, "unverifiable")),
    judged(2, step(1, critical=True), step(2)),
    judged(
        3,
        step(1, "contradicted", "reasoning", "image_understanding", critical=True),
        step(2, "contradicted", "reasoning"),
    ),
    judged(4, state="unjudged", why="wrong_ids"),
    judged(5, state="absent"),
]
RIGHTS = {(1, 0): True, (2, 0): True, (3, 0): False, (4, 0): True, (5, 0): True}


@pytest.fixture
def scores():
    slices = {1: {"modality": ("CT", "MRI")}, 2: {"modality": ("CT",)}, 3: {"modality": ("MRI",)}}
    return score_steps(ROWS, units(1, 2, 3, 4) | units(5, state="absent"), rights=RIGHTS, slices=slices)


def test_rates_of_steps(scores):
    assert scores.steps == 7
    assert scores.support["contradicted"].value == pytest.approx(3 / 7)
    assert scores.errors.value == pytest.approx(3 / 7), "what cannot be verified is not wrong"
    assert scores.support["unverifiable"].value == pytest.approx(1 / 7)
    assert scores.severe.value == pytest.approx(3 / 7)
    assert scores.weights["decisive"].value == pytest.approx(3 / 7)
    assert scores.severities["dangerous"].value == 1.0
    assert scores.critical.value == pytest.approx(3 / 7)
    assert scores.critical_errors.value == pytest.approx(2 / 3)
    assert scores.untyped == 0
    assert scores.errors == rate_interval([0, 1, 0, 0, 0, 1, 1], clusters=[1, 1, 1, 2, 2, 3, 3])


def test_the_error_profile_counts_types_among_critical_and_other_steps(scores):
    counts = {(cell.error_type, cell.critical): (cell.count, cell.of_errors.value) for cell in scores.profile}
    assert counts["image_understanding", True] == (2, 1.0)
    assert counts["reasoning", True] == (1, 0.5)
    assert counts["reasoning", False] == (1, 1.0)
    assert counts["medical_knowledge", False] == (0, 0.0)
    of_steps = {(cell.error_type, cell.critical): cell.of_steps.value for cell in scores.profile}
    assert of_steps["image_understanding", True] == pytest.approx(2 / 3)
    assert of_steps["reasoning", False] == pytest.approx(1 / 4)


def test_a_wrong_step_that_is_not_critical_spares_the_critical_ones():
    wrong = ("contradicted", "reasoning")
    rows = [judged(1, step(1, critical=True), step(2, *wrong)), judged(2, step(1, *wrong, critical=True))]
    found = score_steps(rows, units(1, 2), rights={(1, 0): True, (2, 0): True}, slices={}).sound_if_right
    assert (found.every_step.value, found.no_wrong_critical_step.value) == (0.0, 0.5)


def test_a_prediction_of_too_many_units_is_still_due():
    coverage = measure_coverage([judged(1, step(1))], units(1) | units(2, state="too_many") | units(3, state="absent"))
    assert (coverage.due, coverage.judged, coverage.missing, coverage.is_complete) == (2, 1, 1, False)


def test_right_for_the_right_reasons_leaves_the_unjudged_out_and_counts_the_absent_as_unsound(scores):
    right = scores.sound_if_right
    assert (right.every_step.value, right.every_step.n) == (pytest.approx(1 / 3), 3)
    assert right.no_wrong_critical_step.value == pytest.approx(1 / 3)
    assert (scores.sound_if_wrong.every_step.value, scores.sound_if_wrong.every_step.n) == (0.0, 1)


def test_a_rationale_of_steps_that_nobody_can_verify_is_not_right_for_the_right_reasons():
    invented = [judged(case, step(1, "unverifiable"), step(2)) for case in range(1, 5)]
    rows = [*invented, judged(5, step(1)), judged(6, step(1, "contradicted", "reasoning"))]
    cases = range(1, 7)
    found = score_steps(rows, units(*cases), rights=dict.fromkeys([(case, 0) for case in cases], True), slices={})
    sound = found.sound_if_right
    assert sound.every_step.value == pytest.approx(1 / 6)
    assert sound.no_wrong_step.value == pytest.approx(5 / 6)
    assert sound.unverifiable.value == pytest.approx(4 / 10)


def test_first_errors(scores):
    assert scores.first_errors.by_step == {1: 1, 2: 1}
    assert scores.first_errors.without == 1
    assert scores.first_errors.place.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    twice = [
        judged(case, step(case, "contradicted", "reasoning"), step(9), repeat=repeat)
        for case in (1, 2, 3)
        for repeat in (0, 1)
    ]
    place = score_steps([*twice, ROWS[0]], units(1, 2, 3), rights={}, slices={}).first_errors.place
    assert (place.n, place.clusters) == (7, 3), "the interval is over cases"


def test_slices_hold_their_cases_and_a_case_may_be_in_two(scores):
    found = {one.value: (one.cases, one.scores.steps, one.scores.errors.value) for one in scores.slices}
    assert found == {"CT": (2, 5, pytest.approx(1 / 5)), "MRI": (2, 5, pytest.approx(3 / 5))}


def test_a_slice_is_scored_as_its_cases_alone_would_be(scores):
    (ct,) = (one for one in scores.slices if one.value == "CT")
    alone = score_steps([row for row in ROWS if row.case in (1, 2)], units(1, 2), rights=RIGHTS, slices={})
    assert ct.scores == alone
    assert ct.scores.profile and ct.scores.first_errors == alone.first_errors


def test_below_99_percent_judged_is_incomplete():
    def coverage(ok, bad):
        rows = [judged(k) for k in range(ok)] + [judged(k + ok, state="unjudged", why="failed") for k in range(bad)]
        return measure_coverage(rows, units(*range(ok + bad)))

    assert coverage(99, 1).is_complete
    assert not coverage(197, 3).is_complete
    assert coverage(98, 2).unjudged == {"failed": 2}


def test_what_was_never_asked_counts_as_missing():
    coverage = measure_coverage([judged(1)], units(1, 2))
    assert (coverage.due, coverage.judged, coverage.missing, coverage.is_complete) == (2, 1, 1, False)
    repeated = measure_coverage([judged(1), judged(1, repeat=1), judged(2)], units(1, 2))
    assert (repeated.due, repeated.missing, repeated.is_complete) == (4, 1, False)


def test_what_could_not_be_cut_is_due_and_what_is_of_another_kind_is_not():
    rows = [judged(1), judged(2, state="unjudged", why="unsplit")]
    coverage = measure_coverage(rows, units(1) | units(1, 2, 3, what="findings"))
    assert (coverage.due, coverage.judged, coverage.missing, coverage.unjudged) == (2, 1, 0, {"unsplit": 1})


def test_seats_differ_by_judge_setting_and_prompt():
    rows = [
        judged(1),
        judged(1, judge="openai/b"),
        judged(1, prompt="q"),
        judged(1, setting=JudgeSettings(sees=("history", "images"))),
        judged(2),
    ]
    assert sorted(len(group) for group in by_judge_config(rows, "steps").values()) == [1, 1, 1, 2]
    assert len(merge_judgements(rows[:3], rows[3:])) == 5, "judgements of two seats took each other's place"
    short = JudgeSettings(sees=("history",), max_tokens=9)
    assert len(set(name_judges(label_judges([rows[0], judged(1, setting=short)])).values())) == 2


def test_a_seat_states_what_was_really_attached():
    seeing = JudgeSettings(sees=("history", "images"))

    def label(*images, setting=seeing, **changes):
        rows = [judged(case, setting=setting, images=count, **changes) for case, count in enumerate(images, start=1)]
        (one,) = label_judges(rows).values()
        return one

    assert label(3, 1) == "openai/a · with images"
    assert label(3, 0, 2) == "openai/a · images attached to 2 of 3"
    assert label(0, 0) == "openai/a · images attached to 0 of 2"
    assert label(0, 0, setting=JudgeSettings(sees=("history",))) == "openai/a · without images"
    assert label(None, None) == "openai/a · with images", "no model was asked"
    assert label(3, judge="panel") == "panel", "its judges say what each of them saw"
    rows = [judged(1, step(1), setting=seeing, images=2), judged(2, step(1), setting=seeing, images=0)]
    kept = score_steps(rows, units(1, 2), rights={}, slices={})
    assert kept.label == "openai/a · images attached to 1 of 2"


def test_a_majority_is_more_than_half():
    assert majority_label(["a", "a", "b"]) == "a"
    assert majority_label(["a", "b"]) is None
    assert majority_label([]) is None
    assert majority_label([False, False, True]) is False
    assert pairwise_disagreement(["a", "a", "b"]) == pytest.approx(2 / 3)


def test_the_panel_votes_unit_by_unit_and_is_unjudged_where_it_is_divided():
    wrong = step(1, "contradicted", "reasoning", critical=True)
    three = [judged(1, wrong, judge="a/x"), judged(1, wrong, judge="a/y"), judged(1, step(1), judge="a/z")]
    (row,) = panel_judgements(three)
    assert (row.state, row.verdicts[0].factual, row.verdicts[0].error_types) == ("ok", "contradicted", ("reasoning",))
    assert row.repeat == 0, "a panel judges once"
    (split,) = count_votes(three)
    assert (split.majority, split.judgements) == ("contradicted", 3)
    assert split.disagreement == pytest.approx(2 / 3)
    (row,) = panel_judgements(three[1:])
    assert (row.state, row.why, row.ties) == ("unjudged", "no_majority", ("u1",))


def test_a_tie_is_a_state_of_its_unit_and_takes_nothing_from_the_others():
    wrong = step(1, "contradicted", "reasoning")
    (row,) = panel_judgements([judged(1, wrong, step(2), judge="a/x"), judged(1, step(1), step(2), judge="a/y")])
    assert (row.state, row.ties, [one.factual for one in row.verdicts]) == ("ok", ("u1",), [None, "supported"])
    assert score_steps([row], units(1), rights={(1, 0): True}, slices={}).steps == 1


def test_a_panel_needs_two_voices_and_a_quorum():
    failed = [judged(case, judge="a/y", state="unjudged", why="failed") for case in (1, 2)]
    alone = [judged(case, step(1), judge="a/x") for case in (1, 2)]
    assert panel_judgements([*alone, *failed]) == [], "a member that failed everywhere makes no panel"
    rows = [*alone, failed[0], judged(2, step(1), judge="a/y")]
    assert [(row.state, row.why) for row in panel_judgements(rows)] == [("unjudged", "no_quorum"), ("ok", None)]


def test_significant_and_dangerous_errors_could_harm_and_decisive_and_contributory_steps_are_critical():
    kind = KINDS["steps"]
    harm = {}
    for word in ("none", "minor", "significant", "dangerous"):
        wrong = msgspec.structs.replace(step(1, "contradicted", "reasoning"), severity=word)
        cells = {"factual": "contradicted", "error_types": "reasoning", "severity": word}
        labels = [kind.labels(wrong), kind.read_cells("step", cells)]
        assert [one["severity"] for one in labels] == [word, word]
        assert labels[0]["could harm"] is labels[1]["could harm"] is wrong.is_severe
        harm[word] = wrong.is_severe
    assert harm == {"none": False, "minor": False, "significant": True, "dangerous": True}
    weights = {word: kind.read_cells("step", {"weight": word})["critical"] for word in WEIGHTS}
    assert weights == {"decisive": True, "contributory": True, "incidental": False}


def test_half_of_the_voices_are_no_quorum():
    rows = [judged(1, step(1), judge=f"a/{name}") for name in "wxyz"]
    rows += [judged(2, step(1), judge=f"a/{name}") for name in "wx"]
    rows += [judged(2, judge=f"a/{name}", state="unjudged", why="failed") for name in "yz"]
    assert [(row.state, row.why) for row in panel_judgements(rows)] == [("ok", None), ("unjudged", "no_quorum")]
    rows[-2] = judged(2, step(1), judge="a/y")
    assert [row.state for row in panel_judgements(rows)] == ["ok", "ok"], "three of four are more than half"


def test_a_tie_leaves_open_what_it_might_change_and_nothing_else():
    wrong = step(2, "contradicted", "reasoning")
    tied = {"judge": "panel", "ties": ("u1",)}
    rows = [
        judged(1, step(2), **tied),  # sound, but for the tie
        judged(2, wrong, **tied),  # wrong whatever the tie, but in no critical step
        judged(3, step(1, "contradicted", "reasoning", critical=True), **(tied | {"ties": ("u2",)})),
        judged(4, step(1), step(2), judge="panel"),
    ]
    scores = score_steps(rows, units(1, 2, 3, 4), rights={(case, 0): True for case in (1, 2, 3, 4)}, slices={})
    every, critical = scores.sound_if_right.every_step, scores.sound_if_right.no_wrong_critical_step
    assert (every.n, every.value) == (3, pytest.approx(1 / 3))
    assert (critical.n, critical.value) == (2, 0.5)
    # Which error is the first is known only where no step is tied.
    assert (scores.first_errors.by_step, scores.first_errors.without) == ({}, 1)


def test_one_model_at_two_settings_or_under_two_names_is_one_voice():
    other = {"setting": JudgeSettings(sees=("history", "images"))}
    assert panel_judgements([judged(1, step(1)), judged(1, step(1), **other)]) == []
    assert panel_judgements([judged(1, step(1), model="gpt-5"), judged(1, step(1), judge="b/x", model="gpt-5")]) == []
    wrong = step(1, "contradicted", "reasoning")
    rows = [judged(1, wrong), judged(1, wrong, **other), *(judged(1, step(1), judge=f"b/{k}") for k in "xy")]
    assert panel_judgements(rows)[0].verdicts[0].factual == "supported", "two against one"


@pytest.mark.parametrize(("first", "then", "counts"), [(True, True, 0), (True, False, 0), (False, True, 1)])
def test_a_voice_counts_by_its_first_reply_that_gave_verdicts(first, then, counts):
    given = (step(1, "contradicted", "reasoning"), step(1))
    replies = [
        judged(1, verdict, prompt=prompt) if has_verdicts else judged(1, prompt=prompt, state="unjudged", why="failed")
        for has_verdicts, verdict, prompt in zip((first, then), given, ("p1", "p2"), strict=True)
    ]
    others = [judged(1, given[counts], judge="b/x"), judged(1, given[1 - counts], judge="b/y")]
    (row,) = panel_judgements([*others, *reversed(replies)])
    assert (row.tries, row.verdicts[0].factual) == (3, given[counts].factual)


def test_a_reply_to_the_prompt_of_today_goes_before_older_ones_whatever_its_digest():
    wrong, today = step(1, "contradicted", "reasoning"), prompt_version("steps")
    for older in ("0" * 64, "f" * 64):
        mine = [judged(1, step(1), judge="a/x", prompt=older), judged(1, wrong, judge="a/x", prompt=today)]
        (row,) = panel_judgements([*mine, judged(1, wrong, judge="b/y", prompt=today)])
        assert row.verdicts[0].factual == "contradicted"
    early, late = (judged(1, one, judge="a/x", prompt=p, judged_at=at) for one, p, at in (
        (step(1), "p0", "2026-01-01"), (wrong, "p1", "2026-02-01")))  # fmt: skip
    (row,) = panel_judgements([early, late, judged(1, wrong, judge="b/y")])
    assert row.verdicts[0].factual == "contradicted", "the latest of two older ones"


def test_one_judge_under_two_settings_is_not_divided_with_itself():
    other = {"setting": JudgeSettings(sees=("history", "images"))}
    rows = (judged(1, step(1)), judged(1, step(1, "contradicted", "reasoning"), **other))
    run = JudgedRun(path=Path("run"), units=units(1), judgements=rows, rights={})
    assert panel_votes(run) == {}


def test_one_setting_has_one_key_however_it_is_written():
    plain = JudgeSettings(sees=("history", "images"), temperature=0)
    assert msgspec.json.encode(plain) == msgspec.json.encode(JudgeSettings(sees=("images", "history"), temperature=0.0))


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", "qwen3-vl-30b-a3b"),
        ("server/Qwen3-VL-30B-A3B-Instruct-AWQ", "qwen3-vl-30b-a3b"),
        ("QuantTrio/Qwen3-VL-30B-A3B-Instruct-FP8", "qwen3-vl-30b-a3b"),
        ("unsloth/Qwen3-VL-30B-A3B-Instruct-GGUF", "qwen3-vl-30b-a3b"),
        ("qwen3-vl:30b-a3b-instruct-q4_K_M", "qwen3-vl-30b-a3b"),
        ("qwen/qwen3-vl-30b-a3b-instruct:free", "qwen3-vl-30b-a3b"),
        ("unsloth/Qwen3-8B-unsloth-bnb-4bit", "qwen3-8b"),
        ("Qwen/Qwen2.5-VL-7B-Instruct-GPTQ-Int4", "qwen2-5-vl-7b"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5:online", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("google/gemini-2.5-pro-preview-05-06", "gemini-2-5-pro"),
        ("openai/gpt-4-1106-preview", "gpt-4"),
        ("openai/gpt-5.2-2025-12-11", "gpt-5-2"),
        ("mistral-large-2411", "mistral-large"),
        ("deepseek-v3", "deepseek-v3"),
        ("openai/gpt-5.2-mini", "gpt-5-2-mini"),
        ("", ""),
    ],
)
def test_a_model_is_the_same_under_every_name_it_is_served_by(name, identity):
    assert model_identity(name) == identity


def test_a_judge_that_was_asked_more_often_has_no_more_votes():
    wrong = step(1, "contradicted", "reasoning")
    often = [judged(1, wrong, judge="a/x", repeat=repeat) for repeat in range(5)]
    (row,) = panel_judgements([*often, judged(1, step(1), judge="a/y"), judged(1, step(1), judge="a/z")])
    assert (row.state, row.verdicts[0].factual, row.tries) == ("ok", "supported", 3)


def test_the_panel_is_one_seat_where_a_judge_has_judged_fewer_predictions():
    seeing = {"judge": "a/y", "setting": JudgeSettings(sees=("history", "images")), "prompt": "q"}
    rows = [judged(1, step(1), judge="a/x"), judged(1, step(1), **seeing), judged(2, step(1), judge="a/x")]
    seated = panel_judgements(rows)
    (seat,) = by_judge_config(seated, "steps")
    assert [row.why for row in seated] == [None, "no_quorum"]
    assert (seat.judge, seat.setting.sees) == ("panel", ("history", "images"))


def test_types_without_a_majority_keep_the_one_named_most():
    a = judged(1, step(1, "contradicted", "medical_knowledge"), judge="a/x")
    b = judged(1, step(1, "contradicted", "reasoning"), judge="a/y")
    (row,) = panel_judgements([a, b])
    assert row.verdicts[0].error_types == ("reasoning",)
    outvoted = judged(1, step(1, "unverifiable", "medical_knowledge"), judge="a/z")
    (row,) = panel_judgements([a, b, outvoted])
    assert (row.verdicts[0].factual, row.verdicts[0].error_types) == ("contradicted", ("reasoning",))


def draw_votes(chance: random.Random, *, judges: int, shared: float) -> list[Judgement]:
    """Judges that call 30 % of 400 steps wrong, most of them dangerous; `shared` is how often they think alike."""
    rows = []
    for case in range(1, 101):
        common = [(chance.random() < 0.3, chance.random() < 0.4) for _ in range(4)]
        for number in range(judges):
            own = [
                both if chance.random() < shared else (chance.random() < 0.3, chance.random() < 0.4) for both in common
            ]
            steps = [
                step(k, *(("contradicted", "reasoning") if wrong else ("supported",)), critical=critical)
                for k, (wrong, critical) in enumerate(own, start=1)
            ]
            rows.append(judged(case, *steps, judge=f"a/judge{number}"))
    return rows


@pytest.mark.parametrize("shared", [0.0, 0.7])
@pytest.mark.parametrize("judges", [2, 3, 4, 5])
def test_on_a_scale_a_panel_says_what_its_judges_say_on_average(judges, shared):
    rows = draw_votes(random.Random(judges), judges=judges, shared=shared)
    cases = {(case, 0): True for case in range(1, 101)}
    every = [*rows, *panel_judgements(rows)]
    scored = {
        config.judge: score_steps(group, units(*range(1, 101)), rights=cases, slices={})
        for config, group in by_judge_config(every, "steps").items()
    }
    panel = scored.pop("panel")
    for read in (
        lambda one: one.severe.value,
        lambda one: one.critical.value,
        lambda one: one.weights["decisive"].value,
    ):
        members = [read(one) for one in scored.values()]
        assert read(panel) == pytest.approx(sum(members) / len(members), abs=0.01)


def test_an_aspect_without_a_majority_is_left_out_and_the_panel_has_nothing_to_say_of_nothing():
    (row,) = panel_judgements([judged(1, step(1, critical=True), judge="a/x"), judged(1, step(1), judge="a/y")])
    assert (row.verdicts[0].factual, row.verdicts[0].critical) == ("supported", None)
    judges = ("a/x", "a/y")
    rows = [judged(1, step(1), judge=name) for name in judges] + [
        judged(2, judge=one, state="absent") for one in judges
    ]
    assert [row.state for row in panel_judgements(rows)] == ["ok", "absent"]


def test_the_panel_on_discussions_is_the_majority_of_labels_and_the_mean_score():
    def discussed(judge, label, score):
        verdict = SentenceVerdict(id="u1", label=label, reason="so")
        education = (EducationVerdict(id=name, dimension=name, score=score, reason="so") for name in DIMENSIONS)
        return judged(1, verdict, *education, what="discussion", judge=judge)

    def total_of(row):
        unit = Unit(id="u1", part="background", start=0, end=1, text="t")
        ((key, one),) = units(1, what="discussion").items()
        return KINDS["discussion"].score([row], {key: msgspec.structs.replace(one, units=(unit,))}, {}).total.value

    three = [discussed("a/x", "correct", 2), discussed("a/y", "incorrect", 0), discussed("a/z", "incorrect", 1)]
    (row,) = panel_judgements(three)
    assert row.verdicts[0].label == "incorrect"
    assert total_of(row) == pytest.approx(5.0)
    (row,) = panel_judgements([three[0], discussed("a/w", "correct", 1)])
    assert total_of(row) == pytest.approx(7.5), "the mean of two"
    assert [one.id for one in panel_judgements(three[:2])[0].verdicts] == list(DIMENSIONS), "a score has a middle"


def test_the_panel_on_findings_is_the_majority_of_support():
    def found(judge, support):
        verdict = StatementVerdict(id="u1", support=support, reason="so", rests_on=("history",))
        return judged(1, verdict, what="findings", judge=judge)

    three = [found("a/x", "unverifiable"), found("a/y", "supported"), found("a/z", "supported")]
    assert panel_judgements(three)[0].verdicts[0].support == "supported"
    assert panel_judgements(three[:2])[0].why == "no_majority"


def test_the_embedded_judge_and_the_unjudged_have_no_vote():
    rules = judged(1, step(1, "contradicted", "reasoning"), judge="baseline/rules")
    silent = judged(1, judge="a/y", state="unjudged", why="failed")
    (row,) = panel_judgements([rules, silent, *(judged(1, step(1), judge=f"a/{name}") for name in "xz")])
    assert row.verdicts[0].factual == "supported"
    assert panel_judgements([rules, silent, judged(1, step(1), judge="a/x")]) == []
    assert panel_judgements([rules]) == []
    assert rules.seat.is_smoke_test
    assert "smoke test" in rules.seat.label()


def test_judgements_survive_a_round_trip(tmp_path):
    write_judgements(tmp_path, ROWS)
    assert read_judgements(tmp_path) == ROWS


def test_the_interval_of_a_score_stays_on_its_scale():
    found = clustered_mean([(case, 2 if case else 0) for case in range(4)], within=(0, 2))
    assert (found.value, found.low, found.high) == (1.5, 0, 2)
    assert mean_interval([0, 2, 2, 2]).high > 2


def test_invented_findings_are_counted_beside_contradicted_ones():
    rows = [judged(1, step(1), step(2, "not described"), step(3, "unverifiable"))]
    found = score_steps(rows, units(1), rights={(1, 0): True}, slices={})
    assert found.support["not described"].value == pytest.approx(1 / 3)
    assert found.support["unverifiable"].value == pytest.approx(1 / 3)
    assert found.sound_if_right.every_step.value == 0.0
    assert found.sound_if_right.not_described.value == pytest.approx(1 / 3)
    row = step_tables(found)[0].rows[0]
    assert {"Wrong steps", "Not described", "Unverifiable", "Hedged"} <= set(row)


def test_a_rationale_that_hedges_everything_does_not_lead():
    cases = range(1, 11)
    rows = [judged(case, step(1), step(2), step(3)) for case in cases]
    rights = dict.fromkeys([(case, 0) for case in cases], True)
    plain = score_steps(rows, units(*cases), rights=rights, slices={})
    hedging = score_steps(rows, worded("It may be large.", *cases), rights=rights, slices={})
    assert (plain.stated.value, plain.hedged.value, plain.sound_if_right.every_step.value) == (1.0, 0.0, 1.0)
    assert (hedging.stated.value, hedging.hedged.value, hedging.sound_if_right.every_step.value) == (0.5, 1.0, 0.0)
    assert hedging.support["supported"].value == 1.0


@pytest.mark.parametrize("text", ["Possibly a cyst.", "It could be A.", "Suspected abscess", "This is probably fat."])
def test_words_of_possibility_hedge(text):
    assert is_hedged(text)


@pytest.mark.parametrize(
    "text", ["The mass enhances.", "Fat can be seen.", "No effusion.", "An abscess would enhance."]
)
def test_what_is_stated_or_supposed_is_no_hedge(text):
    assert not is_hedged(text)
