"""The tasks: plain functions from a question to an outcome, independent of how calls are made or stored."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from medthink.cases.case import Question
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.core.plugins import load_plugin, plugin_names
from medthink.models.request import Reply
from medthink.workflow import parsing
from medthink.workflow.ask import Ask, PromptKind, StepText, Unanswered, Unparsed
from medthink.workflow.condition import Condition, CueSource
from medthink.workflow.prediction import (
    AnswerOutcome,
    DiscussionOutcome,
    Outcome,
    RecallOutcome,
    RecallReply,
    TwiOutcome,
    outcome_so_far,
)
from medthink.workflow.prompts import load_prompts
from medthink.workflow.view import Cues, Shown, show_under_condition
from medthink.workflow.written_text import DISCUSSION, FINDINGS, STEPS, WrittenText

RECALL_KINDS: tuple[PromptKind, ...] = ("hidden_option", "hidden_option", "option_letters", "case_number")


async def recall(question: Question, cues: Cues, ask: Ask, condition: Condition) -> RecallOutcome:  # noqa: ARG001
    """Ask what only memory of the published case can answer: a hidden option, the letters, the case's number."""
    if not question.options:
        return outcome_so_far(RecallOutcome(), Unanswered("failed", "the case has no options, so none can be hidden"))
    prompts = load_prompts(condition.prompt_set)
    hidden = _hide_one(question, condition.seed)
    other = show_under_condition(Condition(option_order="seeded", seed=condition.seed), question)
    moved = next(letter for letter, original in other.letters.items() if original == hidden)
    asked = (
        prompts.hidden_option(question, hidden),
        prompts.hidden_option(other.question, moved),
        prompts.option_letters(other.question),
        prompts.case_number(question),
    )
    try:
        return _recollect(await ask.each(asked), hidden, other)
    except Unanswered as stop:
        return (
            outcome_so_far(_recollect(stop.replies, hidden, other), stop)
            if stop.replies
            else outcome_so_far(RecallOutcome(), stop)
        )


def refuse_recall(condition: Condition) -> None:
    """Raise UsageError if the condition leaves nothing to recall, or would give the answer away."""
    if not condition.show_options or condition.option_order != "as_is":
        raise UsageError(
            "recall sets the order of the options itself",
            remedy="leave out --hide-options and --option-order",
        )
    if not condition.is_unaided or condition.samples > 1:
        raise UsageError("recall is asked once, without an expert's words", remedy="leave out the cues and --samples")


def _hide_one(question: Question, seed: int) -> str:
    """The letter of the option that is hidden: any of them, since the right one is not known here."""
    letters = list(question.options)
    return letters[seed_from("hidden option", seed, question.history, *question.options.values()) % len(letters)]


def _recollect(replies: Sequence[Reply | None], hidden: str, other: Shown) -> RecallOutcome:
    """The contents of the replies, as far as each can be read."""
    read: tuple[Callable[[Reply], Any], ...] = (
        lambda reply: parsing.parse_text(reply, "option"),
        lambda reply: parsing.parse_text(reply, "option"),
        lambda reply: parsing.parse_letters(reply, list(other.letters)),
        parsing.parse_number,
    )
    parsed = [None if reply is None else parse(reply) for parse, reply in zip(read, replies, strict=True)]
    problems = [one.reason for one in parsed if isinstance(one, Unparsed)]
    option, reordered, letters, number = (None if isinstance(one, Unparsed) else one for one in parsed)
    return RecallOutcome(
        state="unparsed" if problems else "ok",
        detail="; ".join(problems),
        recollection=RecallReply(
            hidden=hidden,
            option=option and option.text,
            option_reordered=reordered and reordered.text,
            letters=letters and dict(sorted(zip(other.letters.values(), letters, strict=True))),
            number=number,
        ),
    )


TaskFunction = Callable[[Question, Cues, Ask, Condition], Awaitable[Outcome]]
Parsed = TypeVar("Parsed")


class Task(msgspec.Struct, frozen=True):
    """A task by name: its function, its default condition, the prompts it sends and the texts it writes.

    `kinds` gives the kinds of prompts under a condition; `texts` are what is compared with the expert's words;
    `ends_in_answer` says whether the task ends in a diagnosis; `note` is said with its scores; `refuse` raises
    UsageError for a condition that the task cannot be run under.
    """

    name: str
    run: TaskFunction
    default: Condition
    kinds: Callable[[Condition], tuple[PromptKind, ...]]
    texts: tuple[WrittenText, ...] = ()
    ends_in_answer: bool = True
    note: str = ""
    refuse: Callable[[Condition], None] = lambda _: None

    @property
    def writes_steps(self) -> bool:
        """Whether the task can write findings and summary itself."""
        return FINDINGS in self.texts


async def answer(question: Question, cues: Cues, ask: Ask, condition: Condition) -> AnswerOutcome:
    """Show everything at once and ask for the diagnosis."""
    prompts = load_prompts(condition.prompt_set)
    try:
        reply = await ask(prompts.answer(question, cues))
        return AnswerOutcome(choice=_readable(parsing.parse_answer(reply, question.options)))
    except Unanswered as stop:
        return outcome_so_far(AnswerOutcome(), stop)


async def think_with_images(question: Question, cues: Cues, ask: Ask, condition: Condition) -> TwiOutcome:
    """Ask about each image, then for the summary, then for the diagnosis; a step not asked for is skipped."""
    if condition.single_call:
        return await _think_at_once(question, ask, condition)
    prompts = load_prompts(condition.prompt_set)
    findings, summary, thought = cues.findings, cues.summary, TwiOutcome()
    try:
        if condition.findings == "self":
            noted = _read_each(await ask.each(prompts.findings(question, image) for image in question.images))
            thought = replace(thought, findings=noted)
            findings = tuple(note.text for note in noted)
        # Without images there is nothing to summarise.
        if condition.summary == "self" and question.images:
            written = _readable(parsing.parse_text(await ask(prompts.summary(question, findings)), "summary"))
            thought = replace(thought, summary=written)
            summary = written.text
        reply = await ask(prompts.differential(question, findings, summary))
        return replace(thought, choice=_readable(parsing.parse_answer(reply, question.options)))
    except Unanswered as stop:
        kept = replace(thought, findings=_read_some(stop.replies)) if stop.replies else thought
        return outcome_so_far(kept, stop)


async def discussion(question: Question, cues: Cues, ask: Ask, condition: Condition) -> DiscussionOutcome:
    """Ask for a teaching discussion of the case in six sections."""
    prompts = load_prompts(condition.prompt_set)
    try:
        return DiscussionOutcome(
            sections=_readable(parsing.parse_sections(await ask(prompts.discussion(question, cues))))
        )
    except Unanswered as stop:
        return outcome_so_far(DiscussionOutcome(), stop)


def _twi_kinds(condition: Condition) -> tuple[PromptKind, ...]:
    if condition.single_call:
        return ("twi",)
    steps: list[PromptKind] = ["findings"] if condition.findings == "self" else []
    steps += ["summary"] if condition.summary == "self" else []
    return (*steps, "differential")


TASKS = {
    task.name: task
    for task in (
        Task("answer", answer, Condition(), lambda _: ("answer",)),
        Task("twi", think_with_images, Condition(), _twi_kinds, texts=STEPS),
        Task(
            "discussion", discussion, Condition(), lambda _: ("discussion",), texts=(DISCUSSION,), ends_in_answer=False
        ),
        Task(
            "recall",
            recall,
            # Memory is about text, and images cost most.
            Condition(image_share=0.0),
            lambda _: RECALL_KINDS,
            ends_in_answer=False,
            note="Recall has no score: use medthink audit contamination.",
            refuse=refuse_recall,
        ),
    )
}


def task_names() -> list[str]:
    """The tasks here, and those that other packages add."""
    return [*TASKS, *(name for name in plugin_names("medthink.tasks") if name not in TASKS)]


def default_condition(name: str) -> Condition:
    """The default condition of a task."""
    return resolve_condition(name, task_named(name).default)


def task_named(name: str) -> Task:
    """The task of that name, or UsageError."""
    task = TASKS.get(name) or load_plugin("medthink.tasks", name)
    if task is None:
        raise UsageError(f"no such task: {name}", remedy=f"known: {', '.join(task_names())}")
    if not isinstance(task, Task):
        raise UsageError(f"the entry point {name} of another package is not a Task", remedy="see docs/extending.md")
    return task


def resolve_condition(name: str, condition: Condition) -> Condition:
    """The condition with all fields resolved that it leaves to the task, such as the model's own steps."""
    task = task_named(name)

    def settle(*sources: CueSource) -> CueSource:
        return next((one for one in sources if one != "task"), "self" if task.writes_steps else "none")

    return replace(
        condition,
        findings=settle(condition.findings, task.default.findings),
        summary=settle(condition.summary, task.default.summary),
    )


def find_task(name: str, condition: Condition) -> Task:
    """The task of that name, or UsageError when it does not exist or cannot be run under the condition."""
    task = task_named(name)
    is_self = (condition.findings == "self", condition.summary == "self")
    if not task.writes_steps and any(is_self):
        raise UsageError(f"the task {name} asks once and writes no findings of its own", remedy="use the task twi")
    if not task.writes_steps and condition.single_call:
        raise UsageError(f"the task {name} already is a single call", remedy="leave single_call out")
    if condition.single_call and not all(is_self):
        raise UsageError(
            "a single call writes findings and summary itself", remedy='set findings and summary to "self"'
        )
    task.refuse(condition)
    return task


@cache
def _added_tasks() -> dict[str, Task]:
    """The tasks of other packages, imported once."""
    return {name: task_named(name) for name in task_names() if name not in TASKS}


def known_texts() -> dict[str, WrittenText]:
    """Every text that a task writes, by its name in scores."""
    return {text.name: text for task in (*TASKS.values(), *_added_tasks().values()) for text in task.texts}


def ends_in_answer(name: str) -> bool:
    """Whether the task ends in a diagnosis; one of a package that is not installed is assumed to."""
    task = TASKS.get(name) or _added_tasks().get(name)
    return task is None or task.ends_in_answer


def has_letters(name: str, condition: Condition) -> bool:
    """Whether a run of the task ends in letters, which can be right or wrong."""
    return condition.show_options and ends_in_answer(name)


def prompt_versions(name: str, condition: Condition) -> dict[PromptKind, str]:
    """The version of every kind of prompt that the task sends under the condition."""
    prompts = load_prompts(condition.prompt_set)
    return {kind: prompts.version(kind) for kind in find_task(name, condition).kinds(condition)}


def count_calls(name: str, condition: Condition, images: int) -> int:
    """How many prompts the task sends for a case with this many images, if none of them fails."""
    kinds = find_task(name, condition).kinds(condition)
    once = sum(1 for kind in kinds if kind != "findings" and (kind != "summary" or images))
    return once + (images if "findings" in kinds else 0)


async def _think_at_once(question: Question, ask: Ask, condition: Condition) -> TwiOutcome:
    prompts = load_prompts(condition.prompt_set)
    try:
        reply = await ask(prompts.think_with_images(question))
        steps = _readable(parsing.parse_steps(reply, question.options, len(question.images)))
    except Unanswered as stop:
        return outcome_so_far(TwiOutcome(), stop)
    return TwiOutcome(findings=steps.findings, summary=steps.summary, choice=steps.choice, detail=steps.detail)


def _readable(parsed: Parsed | Unparsed) -> Parsed:
    if isinstance(parsed, Unparsed):
        raise Unanswered("unparsed", parsed.reason)
    return parsed


def _read_each(replies: Sequence[Reply]) -> tuple[StepText, ...]:
    """The findings of every image, or the end of the task with those that could be read."""
    texts: list[StepText] = []
    for number, reply in enumerate(replies, start=1):
        parsed = parsing.parse_text(reply, "findings")
        if isinstance(parsed, Unparsed):
            raise Unanswered("unparsed", f"image {number}: {parsed.reason}", replies)
        texts.append(parsed)
    return tuple(texts)


def _read_some(replies: Sequence[Reply | None]) -> tuple[StepText | None, ...]:
    parsed = [None if reply is None else parsing.parse_text(reply, "findings") for reply in replies]
    return tuple(text if isinstance(text, StepText) else None for text in parsed)
