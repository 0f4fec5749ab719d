"""Anthropic Messages: `POST /v1/messages`."""

from typing import Any

import msgspec

from medthink.models.image_detail import claude_version, settle_detail
from medthink.models.request import ImagePart, ModelError, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.answers import (
    IMAGE_MARK,
    check_tier,
    drop_absent,
    end_of_beginning,
    ending_of,
    join_images,
    make_reply,
    read_answer,
    read_optional_text,
)
from medthink.models.wires.usage import TokenCountReader, TokenCounts

MODELS_PATH = "/v1/models"
HEADERS = {"anthropic-version": "2026-10-21"}

TIERS = frozenset({"auto", "standard_only"})
_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}
# Models before 4.6 have no adaptive thinking; effort becomes a budget of thinking tokens.
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 32_768, "max": 63_999}
_FIRST_ADAPTIVE = (4, 6)


class _Block(msgspec.Struct):
    type: Any = None
    text: Any = None
    thinking: Any = None


class _Message(msgspec.Struct):
    content: list[_Block]
    stop_reason: Any
    usage: Any = None
    model: Any = None


def encode(request: Request, model: str) -> Encoded:
    """Encode the request; the provider is told to reject, not resize, an image that is too large.

    The beginning of a request that is repeated is kept in the provider's cache.
    """
    if request.max_tokens is None:
        raise ModelError("unsupported", "Anthropic needs a token limit", remedy="give --max-tokens")
    for name, value, flag in (
        ("temperature", request.temperature, "--temperature"),
        ("seed", request.seed, "--model-seed"),
    ):
        if value is not None:
            raise ModelError("unsupported", f"Anthropic does not accept {name}", remedy=f"leave out {flag}")
    settle_detail(request.image_detail, "anthropic", model)
    thinking, effort = _encode_effort(request, model)
    mark = end_of_beginning(request)
    content = [_encode_part(part, is_cached=place == mark) for place, part in enumerate(request.parts)]
    config = drop_absent({"effort": effort, "format": _encode_format(request)})
    body = drop_absent(
        {
            "model": model,
            "max_tokens": request.max_tokens,
            "system": request.system or None,
            "thinking": thinking,
            "output_config": config or None,
            "service_tier": check_tier(request, TIERS),
            "messages": [{"role": "user", "content": content}],
        }
    )
    return Encoded("/v1/messages", HEADERS, join_images(body, request))


def decode(reply: HttpReply, *, wants_json: bool) -> Reply:
    """Read the message."""
    message = read_answer(reply, _Message, _count)
    counted = _count(message.usage)
    thoughts = [read_optional_text(block.thinking) for block in message.content]
    return make_reply(
        text="".join(read_optional_text(block.text) for block in message.content if block.type == "text"),
        ending=ending_of(message.stop_reason, _STOPS),
        counted=counted,
        model=message.model,
        reasoning="\n".join(thought for thought in thoughts if thought),
        wants_json=wants_json,
    )


def sign(key: str) -> dict[str, str]:
    """The headers that carry the key."""
    return {"Authorization": f"Bearer {key}"}


def _encode_part(part: TextPart | ImagePart, *, is_cached: bool) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": part.media_type, "data": IMAGE_MARK},
        "transformations": {"oversized_image": "error"},
    }
    return image | ({"cache_control": {"type": "ephemeral"}} if is_cached else {})


def _encode_format(request: Request) -> dict[str, Any] | None:
    if request.schema is None:
        return None
    return {"type": "json_schema", "schema": request.schema.definition}


def _encode_effort(request: Request, model: str) -> tuple[dict[str, Any] | None, str | None]:
    """The `thinking` object and the effort of `output_config`."""
    if request.effort is None:
        return None, None
    if request.effort == "none":
        return {"type": "disabled"}, None
    if request.effort == "minimal":
        raise ModelError("unsupported", "Anthropic has no minimal effort", remedy="use --effort none or --effort low")
    if claude_version(model) >= _FIRST_ADAPTIVE:
        return {"type": "adaptive", "display": "summarized"}, request.effort
    budget = _BUDGETS[request.effort]
    if request.max_tokens is None or request.max_tokens <= budget:
        raise ModelError(
            "unsupported",
            f"effort {request.effort} is a thinking budget of {budget:,} tokens for {model}",
            remedy=f"set --max-tokens above {budget}, or lower --effort",
        )
    return {"type": "enabled", "budget_tokens": budget}, None


def _count(usage: Any) -> TokenCounts:
    counts = TokenCountReader(usage)
    fresh, outputs = counts.read("input_tokens"), counts.read("output_tokens")
    if fresh is None or outputs is None:
        return counts.unknown()
    cached = counts.read("cache_read_input_tokens") or 0
    short, long = (counts.read("cache_creation", f"ephemeral_{age}_input_tokens") or 0 for age in ("5m", "1h"))
    written = max(short + long, counts.read("cache_creation_input_tokens") or 0)
    counted = Usage(
        # Anthropic counts what came from the cache, or went into it, separately from the input.
        input=fresh + cached + written,
        cached=cached,
        output=outputs,
        reasoning=counts.read("output_tokens_details", "thinking_tokens") or 0,
        written=written - long,
        written_long=long,
        tier=counts.read_text("service_tier"),
    )
    return counts.settle(counted)
