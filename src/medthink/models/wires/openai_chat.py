"""OpenAI Chat Completions: `POST /chat/completions`."""

from typing import Any

import msgspec

from medthink.models.image_detail import settle_detail
from medthink.models.request import ImageDetail, ImagePart, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.answers import (
    IMAGE_MARK,
    Ending,
    check_tier,
    drop_absent,
    ending_of,
    join_images,
    make_reply,
    not_an_answer,
    read_answer,
    read_text,
)
from medthink.models.wires.openai_responses import (
    HEADERS,
    MODELS_PATH,
    cache_settings,
    mark_cached,
    refuse_temperature,
    sign,
)
from medthink.models.wires.usage import TokenCountReader, TokenCounts

__all__ = ["HEADERS", "MODELS_PATH", "PATH", "decode", "encode", "encode_chat", "encode_part", "sign"]

PATH = "/chat/completions"

TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})
_STOPS: dict[str, Stop] = {
    "stop": "end",
    "eos_token": "end",
    "stop_sequence": "end",
    "length": "truncated",
    "content_filter": "filtered",
}


class _Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: Any = None
    usage: Any = None
    service_tier: Any = None


def encode(request: Request, model: str) -> Encoded:
    """Encode the request in OpenAI's own form; images are sent at the finest detail."""
    refuse_temperature(request, model)
    check_tier(request, TIERS)
    detail = settle_detail(request.image_detail, "openai", model)
    content = mark_cached([encode_part(part, detail) for part in request.parts], request, model)
    settings = {"max_completion_tokens": request.max_tokens} | cache_settings(request, model)
    return encode_chat(request, model, content=content, settings=settings)


def encode_chat(request: Request, model: str, *, content: list[dict[str, Any]], settings: dict[str, Any]) -> Encoded:
    """Encode the request; servers differ in the name of the token limit, and in what they know of images and caches."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    body = drop_absent(
        {
            "model": model,
            "temperature": request.temperature,
            "seed": request.seed,
            "reasoning_effort": request.effort,
            "service_tier": request.service_tier,
            "response_format": _encode_format(request),
            "messages": [*system, {"role": "user", "content": content}],
        }
        | settings
    )
    return Encoded(PATH, HEADERS, join_images(body, request))


def decode(reply: HttpReply, *, wants_json: bool) -> Reply:
    """Read the completion."""
    completion = read_answer(reply, _Completion, _count)
    if not completion.choices:
        raise not_an_answer(reply, _count)
    choice, counted = completion.choices[0], _count(completion.usage).at_tier(completion.service_tier)
    message = choice.message
    refusal = read_text(message.refusal)
    ending = Ending("refused") if refusal else ending_of(choice.finish_reason, _STOPS)
    return make_reply(
        text=refusal or read_text(message.content),
        ending=ending,
        counted=counted,
        model=completion.model,
        reasoning=read_text(message.reasoning_content) or read_text(message.reasoning),
        wants_json=wants_json,
    )


def encode_part(part: TextPart | ImagePart, detail: ImageDetail | None = None) -> dict[str, Any]:
    """A part of the prompt; without a level of detail, none is sent."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    url = {"url": f"data:{part.media_type};base64,{IMAGE_MARK}", "detail": detail}
    return {"type": "image_url", "image_url": drop_absent(url)}


def _encode_format(request: Request) -> dict[str, Any] | None:
    if request.schema is None:
        return None
    schema = {"name": request.schema.name, "schema": request.schema.definition, "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def _count(usage: Any) -> TokenCounts:
    counts = TokenCountReader(usage)
    inputs, outputs = counts.read("prompt_tokens"), counts.read("completion_tokens")
    if inputs is None or outputs is None:
        return counts.unknown()
    counted = Usage(
        input=inputs,
        cached=counts.read("prompt_tokens_details", "cached_tokens") or 0,
        output=outputs,
        reasoning=counts.read("completion_tokens_details", "reasoning_tokens") or 0,
        written=counts.read("prompt_tokens_details", "cache_write_tokens") or 0,
    )
    return counts.settle(counted, counts.read("total_tokens"))
