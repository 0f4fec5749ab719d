"""What our tasks leave in a log of Inspect's, by which it can become a run again."""

from typing import Any

import msgspec
from msgspec.structs import replace

from medthink import __version__
from medthink.core.errors import DataError
from medthink.models.request import Request
from medthink.workflow.condition import Condition

# The name that everything of ours has in a log's metadata.
MARK = "medthink"


class TaskMark(msgspec.Struct, frozen=True, kw_only=True):
    """What a log is about: a task under a condition, over a split of a benchmark.

    `model` is the spec of the model where the log was made of a run.
    """

    benchmark: str
    split: str
    text_fingerprint: str
    task: str
    condition: Condition
    prompts: dict[str, str]
    package: str = __version__
    model: str = ""


class CallMark(msgspec.Struct, frozen=True):
    """Which prompt a call was, and the digest of what it asked."""

    kind: str
    asked: str


def mark(what: TaskMark | CallMark) -> dict[str, Any]:
    """The mark as metadata."""
    return {MARK: msgspec.to_builtins(what)}


def read_task_mark(metadata: dict[str, Any] | None, *, file: object) -> TaskMark | None:
    """The mark of a log of our tasks; None where it is a log of another."""
    if not metadata or MARK not in metadata:
        return None
    try:
        return msgspec.convert(metadata[MARK], TaskMark)
    except msgspec.ValidationError as error:
        raise DataError(
            f"its note of MedThink cannot be read: {error}", file=file, remedy="is it of a later release?"
        ) from None


def digest_asked(request: Request) -> str:
    """The digest of what is asked, without the settings that Inspect's own flags can change."""
    return replace(request, max_tokens=None, temperature=None, seed=None, effort=None).key()
