"""OpenAI Responses: `POST /responses`."""

import re
from typing import Any

import msgspec

from medthink.core.digest import digest_value
from medthink.models.image_detail import settle_detail
from medthink.models.request import ImageDetail, ImagePart, ModelError, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.answers import (
    IMAGE_MARK,
    Ending,
    check_tier,
    drop_absent,
    end_of_beginning,
    ending_of,
    join_images,
    make_reply,
    not_an_answer,
    read_answer,
    read_optional_text,
    read_text,
)
from medthink.models.wires.usage import TokenCountReader, TokenCounts

MODELS_PATH = "/models"
HEADERS: dict[str, str] = {}

TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"})
_STOPS: dict[str, Stop] = {"max_output_tokens": "truncated", "content_filter": "filtered"}
# The families that charge for what goes into their cache, and put every prompt there unless told otherwise.
_SELLS_CACHE = re.compile(r"(ft:)?gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)")
# The families that do not reason. Any other, also one that is not known here, reasons unless that is switched off.
_PLAIN = re.compile(r"(ft:)?(gpt-[34]|chatgpt-4)|gpt-5.*chat")


class _Item(msgspec.Struct):
    type: Any = None
    content: Any = None
    summary: Any = None


class _Response(msgspec.Struct):
    status: str
    output: list[_Item]
    model: Any = None
    usage: Any = None
    service_tier: Any = None
    incomplete_details: Any = None


def encode(request: Request, model: str) -> Encoded:
    """Encode the request; images are sent at the finest detail, and nothing is stored at the provider."""
    if request.seed is not None:
        raise ModelError(
            "unsupported",
            "the Responses API does not accept a seed",
            remedy="leave out --model-seed, or use openai-chat/NAME",
        )
    refuse_temperature(request, model)
    detail = settle_detail(request.image_detail, "openai", model)
    parts = [_encode_part(part, detail) for part in request.parts]
    body = drop_absent(
        {
            "model": model,
            "store": False,
            "instructions": request.system or None,
            "max_output_tokens": request.max_tokens,
            "temperature": request.temperature,
            "reasoning": _encode_effort(request),
            "service_tier": check_tier(request, TIERS),
            "text": _encode_format(request),
            "input": [{"role": "user", "content": mark_cached(parts, request, model)}],
        }
        | cache_settings(request, model)
    )
    return Encoded("/responses", HEADERS, join_images(body, request))


def decode(reply: HttpReply, *, wants_json: bool) -> Reply:
    """Read the response."""
    response = read_answer(reply, _Response, _count)
    if response.status not in ("completed", "incomplete"):
        raise not_an_answer(reply, _count)
    counted = _count(response.usage).at_tier(response.service_tier)
    ending = Ending("end")
    if response.status == "incomplete":
        details = response.incomplete_details
        ending = ending_of(details.get("reason") if isinstance(details, dict) else None, _STOPS)
    messages = [item for item in response.output if item.type == "message"]
    refusal = "".join(read_optional_text(part.get("refusal")) for item in messages for part in _parts(item.content))
    return make_reply(
        text=refusal or "".join(read_text(item.content) for item in messages),
        ending=Ending("refused") if refusal else ending,
        counted=counted,
        model=response.model,
        reasoning="\n".join(_read_reasoning(response.output)),
        wants_json=wants_json,
    )


def sign(key: str) -> dict[str, str]:
    """The headers that carry the key."""
    return {"Authorization": f"Bearer {key}"}


def refuse_temperature(request: Request, model: str) -> None:
    """Refuse a temperature where OpenAI is known not to accept one."""
    is_reasoning = request.effort != "none" and (request.effort is not None or not _PLAIN.match(model))
    if request.temperature is not None and is_reasoning:
        raise ModelError(
            "unsupported",
            f"{model} does not accept a temperature when reasoning is on",
            remedy="leave out --temperature; newer models accept it with --effort none",
        )


def _encode_effort(request: Request) -> dict[str, Any] | None:
    """The effort, and a summary of the reasoning, which is not shown otherwise."""
    if request.effort is None:
        return None
    return {"effort": request.effort} | ({} if request.effort == "none" else {"summary": "auto"})


def sells_cache(model: str) -> bool:
    """Whether what goes into the cache costs more than what does not."""
    return _SELLS_CACHE.match(model) is not None


def cache_settings(request: Request, model: str) -> dict[str, Any]:
    """What goes into OpenAI's cache: where writing costs, only the beginning of requests that are repeated.

    Those with one beginning are led to one machine by a key.
    """
    settings: dict[str, Any] = {"prompt_cache_options": {"mode": "explicit"}} if sells_cache(model) else {}
    if end_of_beginning(request) is not None:
        settings["prompt_cache_key"] = digest_value([image.digest for image in request.images])[:32]
    return settings


def mark_cached(parts: list[dict[str, Any]], request: Request, model: str) -> list[dict[str, Any]]:
    """The encoded parts, with a mark at the end of the beginning that the cache is to keep."""
    end = end_of_beginning(request)
    if end is not None and sells_cache(model):
        parts[end]["prompt_cache_breakpoint"] = {"mode": "explicit"}
    return parts


def _encode_part(part: TextPart | ImagePart, detail: ImageDetail | None) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "detail": detail, "image_url": f"data:{part.media_type};base64,{IMAGE_MARK}"}


def _encode_format(request: Request) -> dict[str, Any] | None:
    if request.schema is None:
        return None
    schema = request.schema
    return {"format": {"type": "json_schema", "name": schema.name, "schema": schema.definition, "strict": True}}


def _count(usage: Any) -> TokenCounts:
    counts = TokenCountReader(usage)
    inputs, outputs = counts.read("input_tokens"), counts.read("output_tokens")
    if inputs is None or outputs is None:
        return counts.unknown()
    written = counts.read("input_tokens_details", "cache_write_tokens") or 0
    long = counts.read("input_tokens_details", "cache_write_tokens_details", "ttl_12h_tokens") or 0
    counted = Usage(
        input=inputs,
        cached=counts.read("input_tokens_details", "cached_tokens") or 0,
        output=outputs,
        reasoning=counts.read("output_tokens_details", "reasoning_tokens") or 0,
        written=max(0, written - long),
        written_long=long,
    )
    return counts.settle(counted, counts.read("total_tokens"))


def _read_reasoning(items: list[_Item]) -> list[str]:
    thoughts = [item for item in items if item.type == "reasoning"]
    texts = [
        read_optional_text(part.get("text"))
        for item in thoughts
        for part in _parts(item.summary) + _parts(item.content)
    ]
    return [text for text in texts if text]


def _parts(value: Any) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
