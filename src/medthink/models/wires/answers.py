"""From a good HTTP reply to a Reply; anything that is not an answer is an error.

The answer itself is read strictly. Other fields (token counts, the model's name, its reasoning) are read leniently: a
good answer is not thrown away because another field is odd.
"""

import json
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
import orjson

from medthink.core.errors import DataError
from medthink.core.jsonio import encode_json, parse_json
from medthink.models.request import ImagePart, ModelError, Reply, Request, Stop, Usage
from medthink.models.wires import HttpReply
from medthink.models.wires.failures import BOM, describe_body, failure_of, find_error_body, one_short_line
from medthink.models.wires.reasoning import split_reasoning
from medthink.models.wires.usage import TokenCounts

Shape = TypeVar("Shape")
CountUsage = Callable[[Any], TokenCounts]
"""Reads the object with the token counts of a reply."""
_TEXT_TYPES = (None, "text", "output_text")


def read_answer(reply: HttpReply, shape: type[Shape], count: CountUsage, usage_field: str = "usage") -> Shape:
    """The body in the provider's form, or the ModelError it represents."""
    if not 200 <= reply.status < 300:
        raise failure_of(reply)
    for body in (reply.body, _mend(reply.body)):
        if (found := _decode(body, shape)) is not None:
            return found
    pieces = [piece for piece in map(_decode_as(shape), _lines(reply.body)) if piece is not None]
    if len(pieces) == 1:
        return pieces[0]
    raise not_an_answer(reply, count, usage_field)


def _decode(body: bytes, shape: type[Shape]) -> Shape | None:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _decode_as(shape: type[Shape]) -> Callable[[bytes], Shape | None]:
    return lambda body: _decode(body, shape)


def _mend(body: bytes) -> bytes:
    """The body without its byte-order mark, and with half a character replaced: such JSON is read by most clients."""
    body = body.removeprefix(BOM)
    if rb"\ud" not in body.lower():
        return body
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return body
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _lines(body: bytes) -> list[bytes]:
    """The objects of a body of several lines, as servers write that stream or log; each different one once."""
    found = (line.removeprefix(b"data:").strip() for line in body.removeprefix(BOM).splitlines())
    return list(dict.fromkeys(line for line in found if line.startswith(b"{")))


def not_an_answer(reply: HttpReply, count: CountUsage, usage_field: str = "usage") -> ModelError:
    """Why a good status came without an answer: an error inside, or another body; tokens it counts were paid for."""
    usage = _salvage_usage(reply.body, count, usage_field)
    if find_error_body(reply.body) is not None:
        error = failure_of(reply)
        error.usage = usage
        return error
    return ModelError("invalid_reply", one_short_line(describe_body(reply)), status=reply.status, usage=usage)


def read_text(value: Any) -> str:
    """A text, given as such or as a list of parts; anything else counts as empty."""
    if isinstance(value, str):
        return value
    return "".join(map(_part_text, value)) if isinstance(value, list) else ""


def read_optional_text(value: Any) -> str:
    """The value if it is a text, else empty: a name or reason that is null or a number carries no information."""
    return value if isinstance(value, str) else ""


class Ending(NamedTuple):
    """How a reply ended; `word` is the provider's reason where it is none that we know."""

    stop: Stop
    word: str = ""


# What servers of many makes call the end at a limit.
_TRUNCATED = frozenset({"length", "max_tokens", "max_new_tokens", "max_length", "max_output_tokens", "model_length"})


def ending_of(reason: Any, stops: dict[str, Stop]) -> Ending:
    """Our word for the provider's; with an unknown one, what came is taken as whole, and the word is kept."""
    word = read_optional_text(reason)
    if (stop := stops.get(word)) is not None:
        return Ending(stop)
    if word.lower() in _TRUNCATED:
        return Ending("truncated")
    return Ending("end", one_short_line(word) or "none")


def make_reply(
    *, text: str, ending: Ending, counted: TokenCounts, model: Any, reasoning: str, wants_json: bool
) -> Reply:
    """The reply; one without an answer, or without the requested JSON, is an error that was paid for."""
    stop, usage = ending.stop, counted.usage
    answer = _read_json(text) if wants_json and stop == "end" else None
    if answer is None:
        thoughts, text = split_reasoning(text)
        reasoning = "\n".join(filter(None, (reasoning, thoughts)))
    if stop == "end" and not text.strip():
        why = "reasoning without an answer" if reasoning else "the answer is empty"
        told = f"{why} (stop reason: {ending.word})" if ending.word else why
        raise ModelError("no_answer", told, status=200, usage=usage)
    if answer is None and wants_json and stop == "end":
        answer = _parse_answer(text, usage)
    return Reply(
        text=text,
        json=answer,
        reasoning=reasoning or None,
        stop=stop,
        stop_word=ending.word,
        usage=usage,
        model=one_short_line(read_optional_text(model)),
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


def _read_json(text: str) -> object | None:
    try:
        value: object = parse_json(text.encode())
    except DataError:
        return None
    return value


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


def check_tier(request: Request, tiers: frozenset[str]) -> str | None:
    """The service tier asked for, or ModelError where the provider has no such tier."""
    if request.service_tier is not None and request.service_tier not in tiers:
        known = f"it has {', '.join(sorted(tiers))}" if tiers else "it has none"
        raise ModelError(
            "unsupported",
            f"the provider has no service tier {request.service_tier}: {known}",
            remedy="choose another --service-tier, or leave it out",
        )
    return request.service_tier


def end_of_beginning(request: Request) -> int | None:
    """The place of the last image in a request that is repeated up to there: the end of what a cache is to keep."""
    places = [place for place, part in enumerate(request.parts) if isinstance(part, ImagePart)]
    return places[-1] if request.is_repeated and places else None


def drop_absent(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that are set: None means not set, and is not sent."""
    return {name: value for name, value in fields.items() if value is not None}
