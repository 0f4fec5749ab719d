"""The retrieval baseline goes through the whole workflow offline, and does better the more it is shown."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from medthink.baselines import open_baseline
from medthink.baselines.baseline import Baseline
from medthink.baselines.retrieval import DiagnosisIndex, join_findings
from medthink.baselines.text_features import passages_of, sections_of
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.errors import UsageError
from medthink.models.request import Reply
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import AnswerOutcome, DiscussionOutcome, TwiOutcome
from medthink.workflow.prompts import SECTIONS
from medthink.workflow.tasks import TASKS
from medthink.workflow.view import NO_CUES, Cues, expert_cues, show_under_condition


class Asking:
    """`ask` straight to a baseline."""

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline

    async def __call__(self, prompt: Prompt) -> Reply:
        return self._baseline.answer(prompt, sample=0)

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        return [self._baseline.answer(prompt, sample=0) for prompt in prompts]


def perform(baseline: Baseline, task: str, case: Case, **changes: Any) -> Any:
    condition = Condition(**changes)
    shown = show_under_condition(condition, case.question)
    cues: Cues = NO_CUES if condition.is_unaided else expert_cues(case.reference, condition, shown)
    return asyncio.run(TASKS[task].run(shown.question, cues, Asking(baseline), condition))


@pytest.fixture(scope="module")
def baseline(toy: Benchmark) -> Baseline:
    return open_baseline("retrieval", toy)


def count_right(baseline: Baseline, cases: list[Case], **condition: Any) -> int:
    outcomes = [perform(baseline, "answer", case, **condition) for case in cases]
    return sum(outcome.choice.letter == case.reference.answer for outcome, case in zip(outcomes, cases, strict=True))


def test_more_images_give_more_right_answers_and_none_give_chance(baseline: Baseline, toy: Benchmark) -> None:
    cases = list(toy["test"])
    right = [count_right(baseline, cases, image_share=share) for share in (0, 0.3, 0.6, 1)]
    assert right[0] < 22 < right[1] < right[2] <= right[3]
    assert right[3] > 54


def test_images_of_another_case_do_not_help(baseline: Baseline, toy: Benchmark) -> None:
    cases = list(toy["test"])
    swapped = 0
    for case, other in zip(cases, cases[1:] + cases[:1], strict=True):
        shown = show_under_condition(Condition(swap_images=True), case.question, other.question)
        outcome = asyncio.run(TASKS["answer"].run(shown.question, NO_CUES, Asking(baseline), Condition()))
        swapped += outcome.choice.letter == case.reference.answer
    assert swapped < 22


def test_without_images_it_says_that_it_draws_at_random(baseline: Baseline, toy: Benchmark) -> None:
    outcome = perform(baseline, "answer", next(iter(toy["test"])), image_share=0)
    assert outcome.choice.explanation.startswith("No image was shown.")


def test_staged_single_call_and_answer_come_to_the_same(baseline: Baseline, toy: Benchmark) -> None:
    for case in list(toy["test"])[:10]:
        own = {"findings": "self", "summary": "self"}
        answered: AnswerOutcome = perform(baseline, "answer", case)
        staged: TwiOutcome = perform(baseline, "twi", case, **own)
        at_once: TwiOutcome = perform(baseline, "twi", case, single_call=True, **own)
        assert staged.state == at_once.state == answered.state == "ok"
        assert staged.findings == at_once.findings and staged.summary == at_once.summary
        assert answered.choice is not None and answered.choice.mode == "strict"
        assert staged.choice == answered.choice
        assert at_once.choice is not None and at_once.choice.letter == answered.choice.letter


def test_findings_are_those_of_similar_images(baseline: Baseline, toy: Benchmark) -> None:
    kinds = [{"ring", "hollow"}, {"solid", "filled"}, {"dotted", "speckles."}, {"striped", "bands."}]
    alike = total = 0
    for case in list(toy["test"])[:20]:
        thought: TwiOutcome = perform(baseline, "twi", case, findings="self", summary="self")
        assert thought.findings is not None
        for finding, known in zip(thought.findings, case.reference.images, strict=True):
            for kind in kinds:
                if kind & set(known.caption.split()):
                    total += 1
                    alike += bool(finding and kind & set(finding.text.split()))
    assert total > 10 and alike / total > 0.9


def test_expert_findings_and_summary_count_without_images(baseline: Baseline, toy: Benchmark) -> None:
    cases = list(toy["test"])
    assert count_right(baseline, cases, image_share=0, summary="expert") > 54
    assert count_right(baseline, cases, findings="expert") > 54


def test_without_options_it_names_a_diagnosis(baseline: Baseline, toy: Benchmark) -> None:
    case = next(iter(toy["test"]))
    named = perform(baseline, "answer", case, show_options=False).choice.text
    assert named.split()[0] == case.reference.answer_text.split()[0]
    drawn = perform(baseline, "answer", case, show_options=False, image_share=0)
    assert drawn.choice.text in {it.reference.answer_text for it in toy["train"]}


def test_the_discussion_has_six_sections_with_the_present_findings(baseline: Baseline, toy: Benchmark) -> None:
    case = next(iter(toy["test"]))
    outcome: DiscussionOutcome = perform(baseline, "discussion", case)
    assert outcome.sections is not None and outcome.sections.mode == "strict"
    assert tuple(outcome.sections.texts) == SECTIONS and all(outcome.sections.texts.values())
    assert case.question.history in outcome.sections.texts["clinical_perspective"]
    assert case.reference.answer_text in outcome.sections.texts["outcome"]
    assert "Look at every image." in outcome.sections.texts["teaching_points"]
    assert perform(baseline, "discussion", case, image_share=0).state == "ok"


def test_the_same_prompt_has_the_same_reply(baseline: Baseline, toy: Benchmark) -> None:
    again = open_baseline("retrieval", Benchmark.open(toy.path))
    for case in list(toy["test"])[:5]:
        assert perform(baseline, "twi", case) == perform(again, "twi", case)


def test_a_train_split_without_readable_images_is_refused(clean_texts: Benchmark, toy: Benchmark) -> None:
    baseline = open_baseline("retrieval", clean_texts)
    with pytest.raises(UsageError, match="none can be read"):
        perform(baseline, "answer", next(iter(toy["test"])))


def test_an_option_never_heard_of_borrows_from_its_namesakes(toy: Benchmark) -> None:
    casebook = DiagnosisIndex(list(toy["train"]))
    findings = ["A ring shaped lesion.", "Striped pattern.", "Bright upper half."]
    options = {"A": "Hyalitis of both sides", "B": "Albinoma of both sides", "C": "Something else entirely"}
    probabilities = casebook.weigh(findings, options).probabilities
    assert probabilities["B"] > probabilities["C"] > probabilities["A"]


def test_sentences_on_rivals_are_kept_apart(toy: Benchmark) -> None:
    case = next(iter(toy["train"]))
    right = case.reference.answer_text
    rival = next(text for text in case.question.options.values() if text != right)
    text = f"Background: A thing.\nImaging perspective: It is round. {rival} is square. {right} and {rival} hurt."
    found = list(passages_of(replace(case, reference=replace(case.reference, discussion=text))))
    assert [passage.is_own for passage in found] == [True, False]
    assert found[0].text == "It is round." and found[1].text == f"{rival} is square."


@pytest.mark.parametrize("last", ["Take Home Message / Teaching Points", "Teaching points:", "**Take-home messages:**"])
def test_discussions_are_split_at_their_headings(last: str) -> None:
    sections = sections_of(f"Background\nOne.\n\nImaging Perspective: Two\nthree.\n{last}\n1. Four.")
    assert sections["background"] == "One." and sections["imaging_perspective"] == "Two\nthree."
    assert sections["teaching_points"] == "1. Four." and sections["outcome"] == ""
    assert not any(sections_of("The background of this is unclear.").values())


def test_a_summary_says_each_finding_once() -> None:
    assert join_findings(["A mass", "A mass", "No fluid."]) == "A mass. No fluid."
    assert join_findings([]) == "No image was shown."
