"""From a good HTTP reply to a Reply; whatever is not an answer is an error here."""

from typing import TypeVar

import msgspec

from medthink.core.errors import DataError
from medthink.core.jsonio import parse_json
from medthink.models.errors import ModelError
from medthink.models.request import Reply, Stop, Usage
from medthink.models.wires import HttpReply
from medthink.models.wires.failures import describe_body, failure_of, find_complaint, shorten

Shape = TypeVar("Shape")


def read_answer(reply: HttpReply, shape: type[Shape]) -> Shape:
    """The body in the provider's shape, or the ModelError it stands for."""
    if reply.status != 200:
        raise failure_of(reply)
    try:
        return msgspec.json.decode(reply.body, type=shape)
    except msgspec.DecodeError:
        pass
    raise not_an_answer(reply)


def not_an_answer(reply: HttpReply) -> ModelError:
    """Why a 200 is none: an error inside, or a body that is something else."""
    if find_complaint(reply.body) is not None:
        return failure_of(reply)
    return ModelError("invalid_reply", shorten(describe_body(reply)), status=reply.status)


def stop_of(reason: str | None, stops: dict[str, Stop], usage: Usage | None) -> Stop:
    """Our word for the provider's; a reason we do not know is an error, never a normal end."""
    stop = stops.get(reason or "")
    if stop is None:
        raise ModelError("invalid_reply", f"unexpected stop reason {reason!r}", usage=usage)
    return stop


def finish(*, text: str, stop: Stop, usage: Usage | None, model: str, reasoning: str | None, wants_json: bool) -> Reply:
    """The reply; an empty answer, or one that is not the JSON asked for, is an error that was paid for."""
    if stop == "end" and not text.strip():
        raise ModelError("invalid_reply", "the answer is empty", status=200, usage=usage)
    return Reply(
        text=text,
        json=_parse_answer(text, usage) if wants_json and stop == "end" else None,
        reasoning=reasoning or None,
        stop=stop,
        usage=usage,
        model=model,
    )


def _parse_answer(text: str, usage: Usage | None) -> object:
    try:
        value: object = parse_json(text.encode())
    except DataError as error:
        raise ModelError(
            "invalid_json",
            shorten(f"the answer is not JSON ({error.problem}): {text}"),
            status=200,
            usage=usage,
            remedy="if this model ignores response schemas, run with --no-schema",
        ) from None
    return value
