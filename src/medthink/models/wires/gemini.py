"""Gemini: `POST /v1/models/NAME:generateContent`."""

import re
from typing import Any
from urllib.parse import quote

import msgspec

from medthink.models.image_detail import settle_detail
from medthink.models.request import ImagePart, ModelError, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.answers import (
    IMAGE_MARK,
    check_tier,
    drop_absent,
    ending_of,
    join_images,
    make_reply,
    not_an_answer,
    read_answer,
    read_optional_text,
)
from medthink.models.wires.failures import one_short_line
from medthink.models.wires.usage import TokenCountReader, TokenCounts

MODELS_PATH = "/v1/models"
HEADERS: dict[str, str] = {}

TIERS = frozenset({"flex", "standard", "priority"})
_STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "truncated",
    "CONTINUATION": "truncated",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "LANGUAGE": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_PROHIBITED_CONTENT": "filtered",
}
# Gemini 2.5 takes a budget of thinking tokens, later models a level.
_BUDGETS = {"none": 0, "minimal": 512, "low": 1_024, "medium": 8_192, "high": 24_576}
_LEVELS = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH"}
_RESOLUTION = "MEDIA_RESOLUTION_"
_MAX_SEED = 2**31 - 1


class _Part(msgspec.Struct):
    text: Any = None
    thought: Any = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: Any = None


class _Response(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: Any = None
    usage_metadata: Any = None
    model_version: Any = None


def encode(request: Request, model: str) -> Encoded:
    """Encode the request."""
    if request.seed is not None and not -_MAX_SEED <= request.seed <= _MAX_SEED:
        raise ModelError("unsupported", "Gemini's seed is a 32-bit number", remedy="give a smaller --model-seed")
    level = settle_detail(request.image_detail, "google", model)
    # The finest level is one of single images, and only the newer API knows it.
    is_finest = level == "ultra_high"
    config = drop_absent(
        {
            "mediaResolution": _RESOLUTION + level.upper() if level and not is_finest else None,
            "temperature": request.temperature,
            "maxOutputTokens": request.max_tokens,
            "seed": request.seed,
            "responseMimeType": "application/json" if request.schema else None,
            "responseJsonSchema": request.schema.definition if request.schema else None,
            "thinkingConfig": _encode_effort(request, model),
        }
    )
    parts = [_encode_part(part, is_finest=is_finest) for part in request.parts]
    body = drop_absent(
        {
            "systemInstruction": {"parts": [{"text": request.system}], "role": "user"} if request.system else None,
            "generationConfig": config or None,
            "serviceTier": check_tier(request, TIERS),
            "contents": [{"role": "user", "parts": parts}],
        }
    )
    models = MODELS_PATH.replace("v1", "v1beta") if is_finest else MODELS_PATH
    path = f"{models}/{quote(model, safe='')}:generateContent"
    return Encoded(path, HEADERS, join_images(body, request))


def decode(reply: HttpReply, *, wants_json: bool) -> Reply:
    """Read the response; a blocked prompt has no candidate and is a filtered reply."""
    response = read_answer(reply, _Response, _count, "usageMetadata")
    counted = _count(response.usage_metadata)
    feedback = response.prompt_feedback
    if isinstance(feedback, dict) and read_optional_text(feedback.get("blockReason")):
        model = one_short_line(read_optional_text(response.model_version))
        return Reply(text="", stop="filtered", usage=counted.usage, model=model, doubts=counted.doubts)
    if not response.candidates:
        raise not_an_answer(reply, _count, "usageMetadata")
    candidate = response.candidates[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    thoughts = [read_optional_text(part.text) for part in parts if part.thought is True]
    return make_reply(
        text="".join(read_optional_text(part.text) for part in parts if part.thought is not True),
        ending=ending_of(candidate.finish_reason, _STOPS),
        counted=counted,
        model=response.model_version,
        reasoning="\n".join(thought for thought in thoughts if thought),
        wants_json=wants_json,
    )


def sign(key: str) -> dict[str, str]:
    """The headers that carry the key."""
    return {"x-goog-api-key": key}


def _encode_part(part: TextPart | ImagePart, *, is_finest: bool) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"text": part.text}
    finest = {"mediaResolution": {"level": f"{_RESOLUTION}ULTRA_HIGH"}} if is_finest else {}
    return {"inlineData": {"mimeType": part.media_type, "data": IMAGE_MARK}} | finest


def _encode_effort(request: Request, model: str) -> dict[str, Any] | None:
    effort = request.effort
    if effort is None:
        return None
    uses_budget = re.match(r"gemini-2\.5", model) is not None
    if effort not in (_BUDGETS if uses_budget else _LEVELS) or (effort == "none" and "pro" in model):
        raise ModelError(
            "unsupported",
            f"{model} has no effort {effort}",
            remedy="choose another --effort (docs/models.md has the table), or leave it out",
        )
    if uses_budget:
        return {"includeThoughts": effort != "none", "thinkingBudget": _BUDGETS[effort]}
    return {"includeThoughts": True, "thinkingLevel": _LEVELS[effort]}


def _count(usage: Any) -> TokenCounts:
    counts = TokenCountReader(usage)
    prompt, visible = counts.read("promptTokenCount"), counts.read("candidatesTokenCount")
    thoughts, tools = counts.read("thoughtsTokenCount") or 0, counts.read("toolUsePromptTokenCount") or 0
    if counts.doubts or prompt is None:
        return counts.unknown()
    counted = Usage(
        # Gemini omits zeros, and counts thoughts separately from the visible answer.
        input=prompt + tools,
        cached=counts.read("cachedContentTokenCount") or 0,
        output=(visible or 0) + thoughts,
        reasoning=thoughts,
        tier=counts.read_text("serviceTier").lower(),
    )
    return counts.settle(counted, counts.read("totalTokenCount"))
