"""OpenAI Responses: `POST /responses`."""

import re
from typing import Any

import msgspec

from medthink.models.errors import ModelError
from medthink.models.request import ImagePart, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.answers import finish, not_an_answer, read_answer, stop_of
from medthink.models.wires.bodies import IMAGE_MARK, drop_absent, join_images

_STOPS: dict[str, Stop] = {"max_output_tokens": "truncated", "content_filter": "filtered"}
# Families that reason and then take no temperature, unless reasoning is switched off.
_REASONING = re.compile(r"o\d|gpt-5(?!.*chat)")


class _Content(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str
    content: list[_Content] | None = None
    summary: list[_Content] | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int
    output_tokens: int
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str
    output: list[_Item]
    model: str = ""
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None


def encode(request: Request, model: str) -> Encoded:
    """Encode the request; images are sent at high detail, and nothing is stored at the provider."""
    if request.seed is not None:
        raise ModelError(
            "unsupported",
            "the Responses API takes no seed",
            remedy="leave out --model-seed, or use openai-chat/NAME",
        )
    refuse_temperature(request, model)
    body = drop_absent(
        {
            "model": model,
            "store": False,
            "instructions": request.system or None,
            "max_output_tokens": request.max_tokens,
            "temperature": request.temperature,
            "reasoning": {"effort": request.effort} if request.effort else None,
            "text": _encode_format(request),
            "input": [{"role": "user", "content": [_encode_part(part) for part in request.parts]}],
        }
    )
    return Encoded("/responses", {}, join_images(body, request))


def decode(reply: HttpReply, *, wants_json: bool) -> Reply:
    """Read the response."""
    response = read_answer(reply, _Response)
    if response.status not in ("completed", "incomplete"):
        raise not_an_answer(reply)
    usage = _read_usage(response.usage)
    stop: Stop = "end"
    if response.status == "incomplete":
        details = response.incomplete_details
        stop = stop_of(details.reason if details else None, _STOPS, usage)
    contents = [content for item in response.output if item.type == "message" for content in item.content or ()]
    refusal = "".join(content.refusal or "" for content in contents)
    return finish(
        text=refusal or "".join(content.text or "" for content in contents),
        stop="refused" if refusal else stop,
        usage=usage,
        model=response.model,
        reasoning="\n".join(_read_reasoning(response.output)),
        wants_json=wants_json,
    )


def sign(key: str) -> dict[str, str]:
    """The headers that carry the key."""
    return {"Authorization": f"Bearer {key}"}


def refuse_temperature(request: Request, model: str) -> None:
    """Refuse a temperature where OpenAI is known not to take one."""
    if request.temperature is not None and request.effort != "none" and _REASONING.match(model):
        raise ModelError(
            "unsupported",
            f"{model} takes no temperature while it reasons",
            remedy="leave out --temperature; newer models take it with --effort none",
        )


def _encode_part(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "detail": "high", "image_url": f"data:{part.media_type};base64,{IMAGE_MARK}"}


def _encode_format(request: Request) -> dict[str, Any] | None:
    if request.schema is None:
        return None
    schema = request.schema
    return {"format": {"type": "json_schema", "name": schema.name, "schema": schema.definition, "strict": True}}


def _read_usage(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input=usage.input_tokens,
        cached=(inputs.cached_tokens or 0) if inputs else 0,
        output=usage.output_tokens,
        reasoning=(outputs.reasoning_tokens or 0) if outputs else 0,
    )


def _read_reasoning(items: list[_Item]) -> list[str]:
    thoughts = [item for item in items if item.type == "reasoning"]
    return [part.text for item in thoughts for part in (item.summary or []) + (item.content or []) if part.text]
