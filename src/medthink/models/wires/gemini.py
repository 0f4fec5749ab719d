"""Gemini: `POST /v1/models/NAME:generateContent`."""

import re
from typing import Any
from urllib.parse import quote

import msgspec

from medthink.models.errors import ModelError
from medthink.models.request import ImagePart, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.answers import finish, not_an_answer, read_answer, stop_of
from medthink.models.wires.bodies import IMAGE_MARK, drop_absent, join_images

_STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "truncated",
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
_MAX_SEED = 2**31 - 1


class _Part(msgspec.Struct):
    text: str | None = None
    thought: bool | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int = 0
    cached_content_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0


class _Response(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    model_version: str = ""


def encode(request: Request, model: str) -> Encoded:
    """Encode the request."""
    if request.seed is not None and not -_MAX_SEED <= request.seed <= _MAX_SEED:
        raise ModelError("unsupported", "Gemini's seed is a 32-bit number", remedy="give a smaller --model-seed")
    config = drop_absent(
        {
            "temperature": request.temperature,
            "maxOutputTokens": request.max_tokens,
            "seed": request.seed,
            "responseMimeType": "application/json" if request.schema else None,
            "responseJsonSchema": request.schema.definition if request.schema else None,
            "thinkingConfig": _encode_effort(request, model),
        }
    )
    body = drop_absent(
        {
            "systemInstruction": {"parts": [{"text": request.system}], "role": "user"} if request.system else None,
            "generationConfig": config or None,
            "contents": [{"role": "user", "parts": [_encode_part(part) for part in request.parts]}],
        }
    )
    path = f"/v1/models/{quote(model, safe='')}:generateContent"
    return Encoded(path, {}, join_images(body, request))


def decode(reply: HttpReply, *, wants_json: bool) -> Reply:
    """Read the response; a blocked prompt has no candidate and is a filtered reply."""
    response = read_answer(reply, _Response)
    usage = _read_usage(response.usage_metadata)
    feedback = response.prompt_feedback
    if feedback and feedback.block_reason:
        return Reply(text="", stop="filtered", usage=usage, model=response.model_version)
    if not response.candidates:
        raise not_an_answer(reply)
    candidate = response.candidates[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    return finish(
        text="".join(part.text or "" for part in parts if not part.thought),
        stop=stop_of(candidate.finish_reason, _STOPS, usage),
        usage=usage,
        model=response.model_version,
        reasoning="\n".join(part.text for part in parts if part.thought and part.text),
        wants_json=wants_json,
    )


def sign(key: str) -> dict[str, str]:
    """The headers that carry the key."""
    return {"x-goog-api-key": key}


def _encode_part(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"text": part.text}
    return {"inlineData": {"mimeType": part.media_type, "data": IMAGE_MARK}}


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


def _read_usage(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(
        input=usage.prompt_token_count,
        cached=usage.cached_content_token_count,
        # Gemini counts thoughts apart from the visible answer.
        output=usage.candidates_token_count + usage.thoughts_token_count,
        reasoning=usage.thoughts_token_count,
    )
