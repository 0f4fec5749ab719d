"""The baselines that follow a rule, and what every baseline's replies have in common."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from medthink.baselines import NAMES, open_baseline
from medthink.baselines.baseline import longest_letter, random_letter, rank_letters
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Question
from medthink.core.errors import UsageError
from medthink.models.request import ModelError, Usage
from medthink.workflow.ask import Choice, SingleReplySteps, StepText
from medthink.workflow.parsing import parse_answer, parse_steps, parse_text
from medthink.workflow.prompts import load_prompts
from medthink.workflow.view import NO_CUES

PROMPTS = load_prompts("default")


def test_random_letters_are_even_and_depend_on_question_and_sample() -> None:
    options = {letter: f"Option {letter}" for letter in "ABCDE"}
    questions = [Question(f"History {number}", (), options) for number in range(2000)]
    counts = Counter(random_letter(question, 0) for question in questions)
    assert set(counts) == set("ABCDE")
    assert all(330 < count < 470 for count in counts.values())
    assert [random_letter(q, 0) for q in questions] == [random_letter(q, 0) for q in questions]
    again = sum(random_letter(q, 0) == random_letter(q, 1) for q in questions)
    assert 300 < again < 500


def test_longest_ignores_spaces_around_and_takes_the_first_of_equals() -> None:
    assert longest_letter(Question("", (), {"A": "ab", "B": "abc", "C": "abcd", "D": "ab    "})) == "C"
    assert longest_letter(Question("", (), {"A": "ab", "B": "xyz", "C": "abc"})) == "B"


def test_majority_is_the_train_splits_most_frequent_letter(toy: Benchmark) -> None:
    counts = Counter(case.reference.answer for case in toy["train"])
    assert counts[rank_letters(list(toy["train"]))[0]] == max(counts.values())
    case = next(iter(toy["test"]))
    reply = open_baseline("majority", toy).answer(PROMPTS.answer(case.question, NO_CUES), sample=0)
    assert reply.json["answer"] == rank_letters(list(toy["train"]))[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_keeps_to_the_form_of_every_step(name: str, toy: Benchmark) -> None:
    baseline, question = open_baseline(name, toy), next(iter(toy["test"])).question
    answered = baseline.answer(PROMPTS.answer(question, NO_CUES), sample=0)
    choice = parse_answer(answered, question.options)
    assert isinstance(choice, Choice) and choice.mode == "strict" and choice.explanation
    assert answered.model == f"baseline/{'guesser:options' if name == 'guesser' else name}"
    assert (answered.usage, answered.latency_s, answered.stop) == (Usage(), 0.0, "end")
    found = parse_text(baseline.answer(PROMPTS.findings(question, question.images[0]), sample=0), "findings")
    summed = parse_text(baseline.answer(PROMPTS.summary(question, ("One.", "Two.")), sample=0), "summary")
    assert isinstance(found, StepText) and isinstance(summed, StepText) and found.mode == summed.mode == "strict"
    reply = baseline.answer(PROMPTS.think_with_images(question), sample=0)
    steps = parse_steps(reply, question.options, len(question.images))
    assert isinstance(steps, SingleReplySteps) and steps.choice.mode == "strict"
    assert steps.findings is not None and len(steps.findings) == len(question.images)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "retrieval"])
def test_what_a_reader_cannot_do_is_an_error_not_an_answer(name: str, toy: Benchmark, show: Callable[..., Any]) -> None:
    baseline, case = open_baseline(name, toy), next(iter(toy["test"]))
    with pytest.raises(ModelError, match="writes no discussion"):
        baseline.answer(PROMPTS.discussion(case.question, NO_CUES), sample=0)
    with pytest.raises(ModelError, match="none are shown"):
        baseline.answer(PROMPTS.answer(show(case, show_options=False), NO_CUES), sample=0)


def test_an_unknown_name_is_refused_with_the_known_ones(toy: Benchmark) -> None:
    with pytest.raises(UsageError, match="baseline/guesser:options"):
        open_baseline("oracle", toy)


def test_without_a_train_split_learners_refuse_at_once_and_rules_work(tmp_path: Path, toy: Benchmark) -> None:
    (tmp_path / "test.jsonl").write_bytes((toy.path / "test.jsonl").read_bytes())
    only_test = Benchmark.open(tmp_path)
    for name in ("majority", "guesser", "retrieval"):
        with pytest.raises(UsageError, match=rf"baseline/{name}\S* learns from the train split"):
            open_baseline(name, only_test)
    for name in ("random", "longest"):
        open_baseline(name, only_test)


@pytest.mark.parametrize("name", ["guesser:question", "retrieval"])
def test_a_case_that_was_learned_from_is_not_answered(name: str, toy: Benchmark, show: Callable[..., Any]) -> None:
    baseline, case = open_baseline(name, toy), next(iter(toy["train"]))
    for condition in ({}, {"option_order": 2, "image_share": 0.3}, {"show_history": False}):
        with pytest.raises(ModelError, match="was trained on this case"):
            baseline.answer(PROMPTS.answer(show(case, **condition), NO_CUES), sample=0)


def test_importing_the_room_loads_nothing_heavy() -> None:
    code = "import sys, medthink.baselines; print({'numpy', 'sklearn', 'scipy', 'PIL'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
