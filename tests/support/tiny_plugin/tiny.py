"""A package of somebody else's that adds a model, a metric and a task to MedThink."""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from medthink.cases.case import Question
from medthink.metrics.registry import Metric
from medthink.models import Model, Reply, Request, Usage
from medthink.workflow.ask import Ask, StepText, Unanswered, Unparsed
from medthink.workflow.condition import Condition
from medthink.workflow.parsing import parse_answer, parse_text
from medthink.workflow.prediction import AnswerOutcome, outcome_so_far
from medthink.workflow.prompts import load_prompts
from medthink.workflow.tasks import Task
from medthink.workflow.view import Cues
from medthink.workflow.written_text import own_text


class Parrot:
    """A model that always gives the same letter."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    async def generate(self, request: Request) -> Reply:
        reply = {"answer": self.letter, "reasoning": "It is always so.", "findings": "A mass.", "summary": "A mass."}
        return Reply(text=json.dumps(reply), model=f"parrot-{self.letter}", usage=Usage(input=10, output=5))


def open_parrot(name: str) -> Model:
    """The model of the spec `parrot/NAME`."""
    return Parrot(name)


def share_of_length(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
    """How much of the reference's length the candidate has, at most all of it."""
    pairs = zip(references, candidates, strict=True)
    return [min(1.0, len(text) / len(reference)) if reference else None for reference, text in pairs]


LENGTH = Metric("length_share", "1", "pairs", "higher", 0.0, 1.0, "length_share", share_of_length)


async def look_twice(question: Question, cues: Cues, ask: Ask, condition: Condition) -> AnswerOutcome:
    """Ask for a summary first, and for the diagnosis with that summary."""
    prompts = load_prompts(condition.prompt_set)
    try:
        first = await ask(prompts.summary(question, None))
        choice = parse_answer(await ask(prompts.differential(question, None, first.text)), question.options)
        if isinstance(choice, Unparsed):
            raise Unanswered("unparsed", choice.reason)
        return AnswerOutcome(choice=choice)
    except Unanswered as stop:
        return outcome_so_far(AnswerOutcome(), stop)


class ImpressionOutcome(AnswerOutcome, frozen=True, kw_only=True):
    """An answer, and a text of its own."""

    impression: StepText | None = None


async def impress(question: Question, cues: Cues, ask: Ask, condition: Condition) -> ImpressionOutcome:
    """Ask for an impression of all images, and for the diagnosis."""
    prompts, outcome = load_prompts(condition.prompt_set), ImpressionOutcome()
    try:
        text = parse_text(await ask(prompts.summary(question, None)), "summary")
        if isinstance(text, Unparsed):
            raise Unanswered("unparsed", text.reason)
        outcome = replace(outcome, impression=text)
        choice = parse_answer(await ask(prompts.answer(question, cues)), question.options)
        if isinstance(choice, Unparsed):
            raise Unanswered("unparsed", choice.reason)
        return replace(outcome, choice=choice)
    except Unanswered as stop:
        return outcome_so_far(outcome, stop)


IMPRESSION = Task(
    "impression",
    impress,
    Condition(),
    lambda _: ("summary", "answer"),
    texts=(own_text("impression", "Impression", lambda reference: reference.findings),),
)

TWICE = Task("twice", look_twice, Condition(findings="none", summary="none"), lambda _: ("summary", "differential"))
