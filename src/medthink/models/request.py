"""Requests to models, and their replies and errors.

A refusal, a truncation or a filtered answer is an *outcome*: it was paid for and has usage, so it is a `Reply` whose
`stop` says so. A `ModelError` is raised when there is no such outcome: the call did not get through, or the reply is
not an answer.
"""

from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import pybase64

from medthink.core.digest import digest_bytes, digest_value
from medthink.core.errors import OutsideError

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
# How finely a provider looks at an image; each has some of these levels.
ImageDetail = Literal["auto", "low", "medium", "high", "ultra_high", "original"]
MediaType = Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
Stop = Literal["end", "truncated", "refused", "filtered"]


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """A piece of the prompt's text."""

    text: str


class ImagePart(msgspec.Struct, frozen=True, tag="image"):
    """An image, base64-encoded once and shared by every step of a case."""

    media_type: MediaType
    digest: str
    base64: bytes
    width: int | None = None
    height: int | None = None

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        media_type: MediaType,
        *,
        width: int | None = None,
        height: int | None = None,
        digest: str | None = None,
    ) -> "ImagePart":
        """Encode and digest the image's file unchanged; pass `digest` if already known."""
        return cls(media_type, digest or digest_bytes(data), pybase64.b64encode(data), width, height)

    @property
    def size_bytes(self) -> int:
        """The size of the image's file."""
        return len(self.base64) // 4 * 3 - self.base64[-2:].count(b"=")

    def __repr__(self) -> str:
        return f"ImagePart({self.media_type}, {self.digest[:12]}…, {self.size_bytes:,} bytes)"


class Schema(msgspec.Struct, frozen=True):
    """The JSON schema the answer must follow, and its name for providers."""

    name: str
    definition: dict[str, Any]


# Matches any reply, to test whether schemas are accepted at all.
EXAMPLE_SCHEMA = Schema("example", {"type": "object", "properties": {}, "required": [], "additionalProperties": False})


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model, independent of which model is asked.

    With `is_json_checked` unset, a reply that is not JSON is not an error: the caller parses it. `service_tier` says
    how fast and at what price it is answered, and `is_repeated` that requests with the same beginning, up to the last
    image, follow within minutes, so that a cache of it pays: neither is part of what is asked. Without an
    `image_detail`, images are sent at the finest level that the model is known to have.
    """

    parts: tuple[TextPart | ImagePart, ...]
    system: str = ""
    schema: Schema | None = None
    is_json_checked: bool = True
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    effort: Effort | None = None
    image_detail: ImageDetail | None = None
    service_tier: str | None = None
    is_repeated: bool = False
    sample: int = 0

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The images, in the order they are sent."""
        return tuple(part for part in self.parts if isinstance(part, ImagePart))

    def content(self) -> dict[str, Any]:
        """Everything that was asked, as plain data; images are represented by digest, never by bytes."""
        detail = {} if self.image_detail is None else {"image_detail": self.image_detail}
        return detail | {
            "system": self.system,
            "parts": [_describe(part) for part in self.parts],
            "schema": None if self.schema is None else [self.schema.name, self.schema.definition],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "effort": self.effort,
            "sample": self.sample,
        }

    def key(self) -> str:
        """The digest of the content: equal requests have equal keys."""
        return digest_value(self.content())


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the provider counts them: `input` includes `cached` and what was `written` to a cache (`written_long`:
    for longer than a few minutes), `output` includes `reasoning`.

    `tier` is the service tier that they were served at, where the provider names one. `is_least`: the counts contradict
    each other, and there may have been more.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    written: int = 0
    written_long: int = 0
    tier: str = ""
    is_least: bool = False

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.written + other.written,
            self.written_long + other.written_long,
            self.tier or other.tier,
            self.is_least or other.is_least,
        )


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer; `usage` is None if the provider does not report it, which is not the same as 0.

    `doubts` names additional fields with invalid values, such as a negative token count; they count as unknown.
    `stop_word` is the provider's reason to stop where it is none that we know: the text is then taken as whole.
    `latency_s` is None if it is not known, as for a reply of a batch.
    """

    text: str
    json: Any = None
    reasoning: str | None = None
    stop: Stop = "end"
    stop_word: str = ""
    usage: Usage | None = None
    model: str = ""
    latency_s: float | None = 0.0
    attempts: int = 1
    doubts: tuple[str, ...] = ()


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at sending a request; `outcome` is "ok", "cancelled" or the kind of the error.

    `is_sent` is False if no byte of it can have reached the server; `is_billed` says that it was or may have been
    billed, whether or not its tokens (`usage`) are known.
    """

    number: int
    endpoint: str
    outcome: str
    is_sent: bool
    latency_s: float
    is_billed: bool = False
    usage: Usage | None = None


class AttemptLog(Protocol):
    """Records the attempts of one call."""

    def note(self, attempt: Attempt) -> None:
        """Record that an attempt ended, in whatever way."""

    async def again(self) -> None:
        """The request is about to be sent again: wait until the budget allows it, or raise."""


class Model(Protocol):
    """Answers requests."""

    async def generate(self, request: Request) -> Reply:
        """Answer the request, or raise ModelError."""
        ...


def _describe(part: TextPart | ImagePart) -> list[str]:
    if isinstance(part, TextPart):
        return ["text", part.text]
    return ["image", part.media_type, part.digest]


ErrorKind = Literal[
    "timeout",
    "rate_limit",
    "server",
    "connection",
    "invalid_reply",
    "no_answer",
    "oversized",
    "invalid_json",
    "bad_request",
    "unsupported",
    "auth",
    "quota",
    "content_filter",
    "unreachable",
    "expired",
]


class FailureRule(NamedTuple):
    """What follows from an attempt that failed in one way.

    `tries` is how many attempts a call has in all if the last one failed so; 1 means that asking the same server again
    is pointless. `elsewhere`: another server may answer. `sickens`: the server itself failed, and rests for a while.
    `is_billed`: the answer may have been generated and billed, even if no token count arrived. `ends_run`: every other
    call would fail in the same way.
    """

    tries: int = 1
    elsewhere: bool = True
    sickens: bool = False
    is_billed: bool = False
    ends_run: bool = False


FAILURES: dict[ErrorKind, FailureRule] = {
    "timeout": FailureRule(tries=3, sickens=True, is_billed=True),
    "rate_limit": FailureRule(tries=10),
    "server": FailureRule(tries=6, sickens=True),
    "connection": FailureRule(tries=6, sickens=True, is_billed=True),
    "invalid_reply": FailureRule(tries=4, sickens=True, is_billed=True),
    # A tool call, or reasoning alone: the same comes again.
    "no_answer": FailureRule(tries=2, is_billed=True),
    "oversized": FailureRule(tries=2, sickens=True, is_billed=True),
    "invalid_json": FailureRule(tries=3, elsewhere=False, is_billed=True),
    "bad_request": FailureRule(),
    "unsupported": FailureRule(),
    "auth": FailureRule(),
    "quota": FailureRule(ends_run=True),
    "content_filter": FailureRule(elsewhere=False),
    "unreachable": FailureRule(elsewhere=False, ends_run=True),
    "expired": FailureRule(elsewhere=False),
}
RETRYABLE: frozenset[ErrorKind] = frozenset(kind for kind, rule in FAILURES.items() if rule.tries > 1)


class ModelError(OutsideError):
    """A call without an answer; `detail` is the server's message, shortened and without the key.

    `is_sent` is False if no byte of it can have reached the server.
    """

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
        remedy: str = "",
        is_sent: bool = True,
    ) -> None:
        where = f"{kind} (HTTP {status})" if status is not None else kind
        super().__init__(f"{where}: {detail}", remedy=remedy)
        self.kind = kind
        self.detail = detail
        self.status = status
        self.retry_after_s = retry_after_s
        self.usage = usage
        self.attempts = 0
        self.is_sent = is_sent

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed when sent again."""
        return self.kind in RETRYABLE

    @property
    def is_billed(self) -> bool:
        """Whether what was sent may have been billed: the answer was lost, unreadable, or came with a good status."""
        is_good = self.status is not None and 200 <= self.status < 300
        return self.usage is not None or is_good or (self.is_sent and FAILURES[self.kind].is_billed)

    @property
    def advice(self) -> str:
        """The detail, and the remedy."""
        return f"{self.detail} → {self.remedy}" if self.remedy else self.detail

    def __repr__(self) -> str:
        return f"ModelError({self.kind!r}, {self.detail!r})"
