"""From a good HTTP reply to a Reply; anything that is not an answer is an error.

The answer itself is read strictly. Other fields (token counts, the model's name, its reasoning) are read leniently: a
good answer is not thrown away because another field is odd.
"""

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
import orjson

from medthink.core.errors import DataError
from medthink.core.jsonio import encode_json, parse_json
from medthink.models.request import ModelError, Reply, Request, Stop, Usage
from medthink.models.wires import HttpReply
from medthink.models.wires.failures import describe_body, failure_of, find_error_body, one_short_line

# Above this a JSON number is no longer exact, and no reply has that many tokens.
_LIMIT = 2**53


class TokenCounts(NamedTuple):
    """The tokens of a reply, None if unknown, and the fields with invalid values."""

    usage: Usage | None
    doubts: tuple[str, ...] = ()


class TokenCountReader:
    """Reads counts out of a reply's usage object, and records the names of invalid ones."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.doubts: list[str] = [] if isinstance(source, dict) or source is None else ["usage"]

    def read(self, *path: str) -> int | None:
        """The count at this path; None if it is absent or invalid."""
        value: Any = self._source
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return None
        count = _whole(value)
        if count is None:
            self.doubts.append(path[-1])
        return count

    def settle(self, tokens_in: int | None, tokens_out: int | None, *, cached: int, reasoning: int) -> TokenCounts:
        """The usage; parts that are larger than their whole are unknown and count as 0."""
        if tokens_in is None or tokens_out is None:
            return TokenCounts(None, tuple(self.doubts))
        if cached > tokens_in:
            self.doubts.append("cached tokens")
            cached = 0
        if reasoning > tokens_out:
            self.doubts.append("reasoning tokens")
            reasoning = 0
        return TokenCounts(Usage(tokens_in, cached, tokens_out, reasoning), tuple(self.doubts))


def _whole(value: Any) -> int | None:
    """The value as a count of tokens: a whole number, or what can only mean one."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 17:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LIMIT
    return value if is_count else None


Shape = TypeVar("Shape")
CountUsage = Callable[[Any], TokenCounts]
"""Reads the object with the token counts of a reply."""
_TEXT_TYPES = (None, "text", "output_text")


def read_answer(reply: HttpReply, shape: type[Shape], count: CountUsage, usage_field: str = "usage") -> Shape:
    """The body in the provider's form, or the ModelError it represents."""
    if not 200 <= reply.status < 300:
        raise failure_of(reply)
    try:
        return msgspec.json.decode(reply.body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    raise not_an_answer(reply, count, usage_field)


def not_an_answer(reply: HttpReply, count: CountUsage, usage_field: str = "usage") -> ModelError:
    """Why a good status came without an answer: an error inside, or another body; tokens it counts were paid for."""
    if find_error_body(reply.body) is not None:
        return failure_of(reply)
    usage = _salvage_usage(reply.body, count, usage_field)
    return ModelError("invalid_reply", one_short_line(describe_body(reply)), status=reply.status, usage=usage)


def read_text(value: Any) -> str:
    """A text, given as such or as a list of parts; anything else counts as empty."""
    if isinstance(value, str):
        return value
    return "".join(map(_part_text, value)) if isinstance(value, list) else ""


def read_optional_text(value: Any) -> str:
    """The value if it is a text, else empty: a name or reason that is null or a number carries no information."""
    return value if isinstance(value, str) else ""


def stop_of(reason: Any, stops: dict[str, Stop], usage: Usage | None) -> Stop:
    """Our word for the provider's; an unknown reason is an error, never a normal end."""
    stop = stops.get(read_optional_text(reason))
    if stop is None:
        raise ModelError("invalid_reply", one_short_line(f"unexpected stop reason {reason!r}"), usage=usage)
    return stop


def make_reply(*, text: str, stop: Stop, counted: TokenCounts, model: Any, reasoning: str, wants_json: bool) -> Reply:
    """The reply; an empty answer, or one without the requested JSON, is an error that was paid for."""
    if stop == "end" and not text.strip():
        raise ModelError("invalid_reply", "the answer is empty", status=200, usage=counted.usage)
    return Reply(
        text=text,
        json=_parse_answer(text, counted.usage) if wants_json and stop == "end" else None,
        reasoning=reasoning or None,
        stop=stop,
        usage=counted.usage,
        model=read_optional_text(model),
        doubts=counted.doubts,
    )


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    is_text = isinstance(part, dict) and part.get("type") in _TEXT_TYPES
    return read_optional_text(part.get("text")) if is_text else ""


def _salvage_usage(body: bytes, count: CountUsage, usage_field: str) -> Usage | None:
    """The token counts of a body without an answer, if it is JSON except for single bytes."""
    try:
        value = orjson.loads(body.decode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return None
    return count(value.get(usage_field)).usage if isinstance(value, dict) else None


def _parse_answer(text: str, usage: Usage | None) -> object:
    try:
        value: object = parse_json(text.encode())
    except DataError as error:
        raise ModelError(
            "invalid_json",
            one_short_line(f"the answer is not JSON ({error.problem}): {text}"),
            status=200,
            usage=usage,
            remedy="if this model ignores response schemas, run with --no-schema",
        ) from None
    return value


# Random for every process, so that no text can contain it.
IMAGE_MARK = secrets.token_hex(16)


def join_images(body: dict[str, Any], request: Request) -> list[bytes]:
    """Encode the body and insert each image at its mark."""
    images = request.images
    pieces = encode_json(body).split(IMAGE_MARK.encode())
    chunks = [pieces[0]]
    for image, piece in zip(images, pieces[1:], strict=True):
        chunks.append(image.base64)
        chunks.append(piece)
    return chunks


def drop_absent(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that are set: None means not set, and is not sent."""
    return {name: value for name, value in fields.items() if value is not None}
