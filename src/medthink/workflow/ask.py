"""The interface between a task and the model that answers it.

A task builds a `Prompt` and awaits `ask(prompt)`. Behind `ask` are the ledger, the limits and a model, or a baseline
that reads the prompt's structure instead of its text; the task does not know which.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

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
    """One prompt.

    `system`, `parts` and `schema` are sent to a model. `kind`, `question`, `image`, `findings` and `summary` hold
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
    """The function with which a task asks: returns a reply, or raises `Unanswered`."""

    async def __call__(self, prompt: Prompt) -> Reply:
        """Send one prompt."""

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        """Send several prompts concurrently; replies in their order; all finish before `Unanswered` is raised."""


State = Literal["ok", "unparsed", "refused", "truncated", "failed"]
# Whether a reply followed the requested form, or could be read all the same.
Mode = Literal["strict", "lenient"]


class StepText(msgspec.Struct, frozen=True):
    """The text of one step's reply."""

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
    """A reply without a single answer, and the reason."""

    reason: str
