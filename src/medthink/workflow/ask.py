"""The interface between a task and the model that answers it.

A task builds a `Prompt` and awaits `ask(prompt)`. Behind `ask` are the ledger, the limits and a model, or a baseline
that reads the prompt's structure instead of its text; the task does not know which.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from medthink.cases.case import Image, Question
from medthink.models.request import Reply, Schema

PromptKind = Literal[
    "answer",
    "findings",
    "summary",
    "differential",
    "twi",
    "discussion",
    "hidden_option",
    "option_letters",
    "case_number",
]
Unfinished = Literal["unparsed", "refused", "truncated", "failed"]


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to ask.

    `system`, `parts` and `schema` are what a model is sent. `kind`, `question`, `image`, `findings` and `summary` hold
    the same as structured data: `question` is the question as the condition shows it, `image` the one that a findings
    prompt is about, `findings` and `summary` what earlier steps (or expert cues) said.
    """

    kind: PromptKind
    question: Question
    system: str
    parts: tuple[str | Image, ...]
    schema: Schema | None = None
    image: Image | None = None
    findings: tuple[str, ...] = ()
    summary: str = ""


class Unanswered(Exception):
    """A call ended without an answer; the task stops here and the case gets this state.

    `replies` are those of the concurrent prompts, in order, None where there is none.
    """

    def __init__(self, state: Unfinished, detail: str, replies: Sequence[Reply | None] = ()) -> None:
        self.state: Unfinished = state
        self.detail = detail
        self.replies = tuple(replies)
        super().__init__(f"{state}: {detail}")


class Ask(Protocol):
    """How a task asks: returns a reply, or raises `Unanswered`."""

    async def __call__(self, prompt: Prompt) -> Reply:
        """Ask one thing."""

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        """Ask several things concurrently, replies in the prompts' order; all finish before `Unanswered` is raised."""


State = Literal["ok", "unparsed", "refused", "truncated", "failed"]
# Whether a reply followed the requested form, or could be read all the same.
Mode = Literal["strict", "lenient"]


class StepText(msgspec.Struct, frozen=True):
    """What one step's reply says."""

    text: str
    mode: Mode


class Choice(msgspec.Struct, frozen=True):
    """The answer a reply commits to; `letter` is one of those shown, or None where no options were shown.

    `text` is the option's text, or the diagnosis in the reply's own words.
    """

    letter: str | None
    text: str
    explanation: str
    mode: Mode


class Sections(msgspec.Struct, frozen=True):
    """The six sections of a discussion, by name."""

    texts: dict[str, str]
    mode: Mode


class SingleReplySteps(msgspec.Struct, frozen=True):
    """The three steps of one single reply; unusable parts are None, and `detail` says why."""

    findings: tuple[StepText, ...] | None
    summary: StepText | None
    choice: Choice
    detail: str = ""


class Unparsed(msgspec.Struct, frozen=True):
    """A reply that commits to no single answer, and why."""

    reason: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a task ended; `detail` says why the state is not ok, or which part of an ok reply could not be used."""

    state: State = "ok"
    detail: str = ""


class AnswerOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of `answer`."""

    choice: Choice | None = None


class TwiOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of `twi`: what the model itself wrote.

    A step that was skipped, given by an expert or not reached is None, and so is one image's finding that is missing.
    """

    findings: tuple[StepText | None, ...] | None = None
    summary: StepText | None = None
    choice: Choice | None = None


class DiscussionOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of `discussion`."""

    sections: Sections | None = None


class RecallReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said where only memory of the published case can tell; None where nothing could be read.

    `hidden` is the letter of the option that was hidden. `option` is what the model wrote in its place with the others
    in the published order, `option_reordered` with the others in another order. `letters` gives the published letter
    of each option as the model named it, `number` the case's number (None too where the model does not know it).
    """

    hidden: str
    option: str | None = None
    option_reordered: str | None = None
    letters: dict[str, str] | None = None
    number: int | None = None


class RecallOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of `recall`."""

    recollection: RecallReply | None = None


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


def outcome_so_far(outcome: AnyOutcome, stop: Unanswered) -> AnyOutcome:
    """The outcome as far as it came, with the state of what stopped it."""
    return msgspec.structs.replace(outcome, state=stop.state, detail=stop.detail)
