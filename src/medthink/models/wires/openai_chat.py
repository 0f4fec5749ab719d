"""OpenAI Chat Completions: `POST /chat/completions`."""

from typing import Any

import msgspec

from medthink.models.request import ImagePart, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.answers import finish, not_an_answer, read_answer, stop_of
from medthink.models.wires.bodies import IMAGE_MARK, drop_absent, join_images
from medthink.models.wires.openai_responses import refuse_temperature, sign

__all__ = ["decode", "encode", "encode_chat", "sign"]

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "eos_token": "end",
    "stop_sequence": "end",
    "length": "truncated",
    "content_filter": "filtered",
}


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str = ""
    usage: _Usage | None = None


def encode(request: Request, model: str) -> Encoded:
    """Encode the request as OpenAI itself wants it; images are sent at high detail."""
    refuse_temperature(request, model)
    return encode_chat(request, model, limit_name="max_completion_tokens", detail="high")


def encode_chat(request: Request, model: str, *, limit_name: str, detail: str | None) -> Encoded:
    """Encode the request; servers differ in the name of the token limit and in knowing image detail."""
    content = [_encode_part(part, detail) for part in request.parts]
    system = [{"role": "system", "content": request.system}] if request.system else []
    body = drop_absent(
        {
            "model": model,
            limit_name: request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "reasoning_effort": request.effort,
            "response_format": _encode_format(request),
            "messages": [*system, {"role": "user", "content": content}],
        }
    )
    return Encoded("/chat/completions", {}, join_images(body, request))


def decode(reply: HttpReply, *, wants_json: bool) -> Reply:
    """Read the completion."""
    completion = read_answer(reply, _Completion)
    if not completion.choices:
        raise not_an_answer(reply)
    choice, usage = completion.choices[0], _read_usage(completion.usage)
    message = choice.message
    stop = stop_of(choice.finish_reason, _STOPS, usage)
    return finish(
        text=message.refusal or message.content or "",
        stop="refused" if message.refusal else stop,
        usage=usage,
        model=completion.model,
        reasoning=message.reasoning_content or message.reasoning,
        wants_json=wants_json,
    )


def _encode_part(part: TextPart | ImagePart, detail: str | None) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    url = {"url": f"data:{part.media_type};base64,{IMAGE_MARK}", "detail": detail}
    return {"type": "image_url", "image_url": drop_absent(url)}


def _encode_format(request: Request) -> dict[str, Any] | None:
    if request.schema is None:
        return None
    schema = {"name": request.schema.name, "schema": request.schema.definition, "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def _read_usage(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input=usage.prompt_tokens,
        cached=(prompt.cached_tokens or 0) if prompt else 0,
        output=usage.completion_tokens,
        reasoning=(completion.reasoning_tokens or 0) if completion else 0,
    )
