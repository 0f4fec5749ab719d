"""What passes between MedThink and Inspect AI: a request as its messages and settings, its output as a reply.

Inspect leaves out settings that a provider's module does not know, some with a line in a log and some without. So the
body that it sent is searched for each setting that was asked for.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import orjson

from medthink.models.request import Effort, ImagePart, ModelError, Reply, Request, Stop, TextPart, Usage
from medthink.models.wires import HttpReply
from medthink.models.wires.answers import Ending, ending_of, make_reply
from medthink.models.wires.failures import failure_of, one_short_line
from medthink.models.wires.usage import TokenCountReader, TokenCounts

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput

_STOPS: dict[str, Stop] = {"stop": "end", "max_tokens": "truncated", "content_filter": "filtered"}
_EFFORTS = frozenset(get_args(Effort))


class _Setting(NamedTuple):
    """A setting of a request: its field, the flag that sets it, and the names it goes by in providers' bodies."""

    field: str
    flag: str
    names: re.Pattern[str]


_SETTINGS = (
    _Setting("seed", "--model-seed", re.compile("seed", re.IGNORECASE)),
    _Setting("temperature", "--temperature", re.compile("temperature", re.IGNORECASE)),
    _Setting("max_tokens", "--max-tokens", re.compile("tokens|num_predict", re.IGNORECASE)),
    _Setting("effort", "--effort", re.compile("effort|think|reason", re.IGNORECASE)),
    _Setting("schema", "", re.compile("schema|grammar|guided", re.IGNORECASE)),
)


def messages_of(request: Request, note: Mapping[str, Any] | None = None) -> "list[ChatMessage]":
    """The request as Inspect's messages; `note` is logged with them and not sent."""
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText

    detail = _detail(request)
    content: list[ContentText | ContentImage] = [
        ContentText(text=part.text) if isinstance(part, TextPart) else ContentImage(image=_url(part), detail=detail)
        for part in request.parts
    ]
    asked = ChatMessageUser(content=list(content), metadata=None if note is None else dict(note))
    return [ChatMessageSystem(content=request.system), asked] if request.system else [asked]


def _detail(request: Request) -> Literal["auto", "low", "high", "original"]:
    """The level of image detail in Inspect's words, which are OpenAI's."""
    detail = request.image_detail
    return "high" if detail not in ("auto", "low", "original") else detail


def settings_of(request: Request) -> "GenerateConfig":
    """The request's settings as Inspect's."""
    from inspect_ai.model import GenerateConfig, ResponseSchema
    from inspect_ai.util import JSONSchema

    form = request.schema
    schema = None if form is None else JSONSchema.model_validate(form.definition)
    return GenerateConfig(
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed,
        reasoning_effort=request.effort,
        response_schema=None if form is None else ResponseSchema(name=form.name, json_schema=schema, strict=True),
    )


def read_output(output: "ModelOutput", *, wants_json: bool) -> Reply:
    """The reply in Inspect's output, or the ModelError it stands for."""
    from inspect_ai._util.constants import NO_CONTENT

    counted = _count(output)
    if output.fallback is not None:
        raise ModelError(
            "unsupported",
            one_short_line(f"{output.fallback.fallback_model} answered in its place"),
            usage=counted.usage,
        )
    if output.empty:
        raise ModelError("no_answer", "the answer is empty", usage=counted.usage)
    return make_reply(
        # Inspect's words for an answer that was empty.
        text="" if output.completion == NO_CONTENT else output.completion,
        ending=_ending_of(output, counted.usage),
        counted=counted,
        model=output.model,
        reasoning=_reasoning_of(output),
        wants_json=wants_json,
    )


def read_failure(error: Exception) -> ModelError:
    """Our error for what Inspect or a provider's package raised."""
    cause = _find_cause(error)
    response = getattr(cause, "response", None)
    status = _status_of(cause) or _status_of(response)
    if status is not None:
        body = getattr(response, "content", None)
        headers = getattr(response, "headers", None)
        told = body if isinstance(body, bytes) and body else orjson.dumps({"error": {"message": str(cause)}})
        return failure_of(HttpReply(status, headers if isinstance(headers, Mapping) else {}, told))
    detail = one_short_line(f"{type(cause).__name__}: {cause}")
    if isinstance(cause, TimeoutError) or "Timeout" in type(cause).__name__:
        return ModelError("timeout", detail, is_sent=not _never_left(cause))
    if isinstance(cause, OSError) or re.search("Connect|Network|Protocol|Payload", type(cause).__name__):
        return ModelError("connection", detail, is_sent=not _never_left(cause))
    # The provider's package stumbled over what came back: an HTML page, a body that was cut off.
    is_stumble = isinstance(cause, ValueError | TypeError | LookupError | AttributeError | AssertionError)
    if is_stumble or "Unexpected non-" in str(cause):
        return ModelError("invalid_reply", detail)
    # What Inspect would have tried again it hands over wrapped.
    is_wrapped = any(hasattr(one, "last_attempt") for one in (error, error.__cause__))
    return ModelError("server" if is_wrapped else "bad_request", detail)


# What is raised where no connection was made, whichever client made it.
_UNCONNECTED = frozenset(
    {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "gaierror", "ClientConnectorError", "InvalidURL"}
)


def _never_left(error: BaseException) -> bool:
    """Whether nothing was sent: the error, or what caused it, says that there was no connection."""
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        seen.append(following)
        following = following.__cause__ or following.__context__
    return any(kind.__name__ in _UNCONNECTED for one in seen for kind in type(one).__mro__)


def refuse_left_out(request: Request, sent: Mapping[str, Any] | None) -> None:
    """Raise ModelError for a setting of the request that is not in the body which Inspect sent."""
    for setting in _SETTINGS:
        asked = getattr(request, setting.field)
        if asked is not None and not (sent and _is_in(asked, setting, sent)):
            what = "the response schema" if setting.field == "schema" else f"{setting.field} {asked}"
            why = "does not send" if sent else "does not show whether it sends"
            remedy = f"leave out {setting.flag}" if setting.flag else "add --no-schema"
            raise ModelError("unsupported", f"Inspect {why} {what} to this model", remedy=remedy)


def _url(image: ImagePart) -> str:
    return f"data:{image.media_type};base64,{image.base64.decode()}"


def _count(output: "ModelOutput") -> TokenCounts:
    usage = output.usage
    if usage is None:
        return TokenCounts(None)
    counts = TokenCountReader(usage.model_dump())
    fresh, outputs = counts.read("input_tokens"), counts.read("output_tokens")
    if fresh is None or outputs is None:
        return counts.unknown()
    cached, written = counts.read("input_tokens_cache_read") or 0, counts.read("input_tokens_cache_write") or 0
    counted = Usage(
        # Inspect's input leaves out what came from the cache or went into it.
        input=fresh + cached + written,
        cached=cached,
        output=outputs,
        reasoning=counts.read("reasoning_tokens") or 0,
        written=written,
    )
    return counts.settle(counted)


def _ending_of(output: "ModelOutput", usage: Usage | None) -> Ending:
    choice = output.choices[0]
    reason = str(choice.stop_reason)
    if reason == "model_length":
        # Where nothing was made, the text is the provider's error message.
        if usage is None or not usage.output:
            raise ModelError(
                "unsupported",
                one_short_line(output.completion),
                usage=usage,
                remedy="lower --max-tokens, or --image-share",
            )
        return Ending("truncated")
    if _is_refusal(choice):
        return Ending("refused")
    return ending_of(reason, _STOPS)


def _is_refusal(choice: Any) -> bool:
    """Whether the model declined, which Inspect often reports as a normal end."""
    details = choice.stop_details
    if details is not None and details.type == "refusal":
        return True
    content = choice.message.content
    return not isinstance(content, str) and any(getattr(part, "refusal", None) for part in content)


def _reasoning_of(output: "ModelOutput") -> str:
    content = output.choices[0].message.content
    parts = [] if isinstance(content, str) else [part for part in content if part.type == "reasoning"]
    return "\n\n".join(filter(None, ((part.summary or "") if part.redacted else part.reasoning for part in parts)))


def _find_cause(error: Exception) -> Exception:
    """What the provider's package raised: Inspect wraps it, twice where it would have tried again."""
    last = getattr(error, "last_attempt", None)
    inner = last.exception() if last is not None else error.__cause__ if hasattr(error, "provider_message") else None
    return _find_cause(inner) if isinstance(inner, Exception) else error


def _status_of(thing: Any) -> int | None:
    found = (getattr(thing, name, None) for name in ("status_code", "code", "status"))
    return next((one for one in found if isinstance(one, int) and 100 <= one < 600), None)


def _is_in(asked: Any, setting: _Setting, sent: Mapping[str, Any]) -> bool:
    values = [value for name, value in _walk(sent) if setting.names.search(name) and value not in (None, {}, [], "")]
    if setting.field == "schema":
        return any(isinstance(value, dict | str) and value not in ("json_object", "json_schema") for value in values)
    if setting.field == "effort":
        words = {value.lower() for value in values if isinstance(value, str)} & _EFFORTS
        # A provider may have its own measure, such as a number of tokens.
        return asked in words if words else bool(values)
    return any(value == asked and not isinstance(value, bool) for value in values)


def _walk(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in the body by its own name, except for those in the messages."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in ("messages", "input", "contents"):
                yield key, inner
                yield from _walk(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, name)
