"""From a bad HTTP reply to the right kind of ModelError."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import orjson

from medthink.core.clock import now_utc
from medthink.models.request import ErrorKind, ModelError
from medthink.models.wires import HttpReply

DETAIL_LENGTH = 300
BOM = b"\xef\xbb\xbf"

# Words of the providers' error bodies (code, type, status) and the kind they mean.
_WORDS: dict[str, ErrorKind] = {
    "insufficient_quota": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "image_content_policy_violation": "content_filter",
    "invalid_prompt": "content_filter",
    "bio_policy": "content_filter",
    "unsupported_parameter": "unsupported",
    "unsupported_value": "unsupported",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "resource_exhausted": "rate_limit",
    "server_error": "server",
    "api_error": "server",
    "overloaded_error": "server",
    "internal": "server",
    "internal_server_error": "server",
    "internalservererror": "server",
    "unavailable": "server",
    "timeout_error": "timeout",
    "deadline_exceeded": "timeout",
    "authentication_error": "auth",
    "permission_error": "auth",
    "invalid_api_key": "auth",
    "permission_denied": "auth",
    "unauthenticated": "auth",
    "invalid_request_error": "bad_request",
    "invalid_argument": "bad_request",
    "failed_precondition": "bad_request",
    "badrequesterror": "bad_request",
    "not_found_error": "bad_request",
    "not_found": "bad_request",
    "model_not_found": "bad_request",
    "request_too_large": "bad_request",
    "image_too_large": "bad_request",
    "invalid_image": "bad_request",
    "invalid_image_format": "bad_request",
    "invalid_base64_image": "bad_request",
    "image_parse_error": "bad_request",
    "image_file_too_large": "bad_request",
    "unsupported_image_media_type": "bad_request",
}
# These are more specific than their HTTP status.
_PRECISE: frozenset[ErrorKind] = frozenset({"quota", "content_filter", "unsupported"})

# The subject of a complaint, and the flag that resolves it; the first match counts.
_FLAGS = (
    (r"temperature", "leave out --temperature"),
    (r"\bdetail\b|media_?resolution", "choose another --image-detail, or leave it out"),
    (r"\bseed\b", "leave out --model-seed"),
    (r"effort|thinking|reasoning", "choose another --effort, or leave it out"),
    (r"schema|response_format|text\.format|output_config\.format|grammar", "run with --no-schema"),
    (r"max_?(completion_?|output_?)?tokens|context (length|window)", "lower --max-tokens, or --image-share"),
    (r"image|multimodal|mm_per_prompt|request_too_large", "lower --image-share, --max-side or --max-bytes"),
)
_NOT_TAKEN = re.compile(
    r"unsupported|not support|does not (accept|allow)|unrecogni[sz]ed|unknown (name|parameter)|not permitted|"
    r"too (many|large)|at most|exceed",
    re.IGNORECASE,
)
# A gateway's moderation refuses a prompt with status 403, which is otherwise about the key.
_MODERATED = re.compile(
    r"(input|prompt|request|content|message|image|text)s? ((was|were|is|are|has been|have been) )?"
    r"(flagged|moderated|blocked|rejected)\b|(flagged|blocked|rejected|refused) by .{0,40}(moderation|safety|content)|"
    r"moderation[_ ](error|failed|blocked)|content[_ -](policy|filter)|safety (system|filter)",
    re.IGNORECASE,
)
# llama.cpp reports this with status 500, which would otherwise be retried.
_NO_IMAGES = re.compile(r"(image|multimodal)\S* (input |data )?(is|are) not supported", re.IGNORECASE)


class ErrorBody(NamedTuple):
    """The contents of an error body, as far as known."""

    message: str
    words: tuple[str, ...] = ()
    code: int | None = None
    retry_after_s: float | None = None


def failure_of(reply: HttpReply) -> ModelError:
    """The error that a reply stands for."""
    complaint = find_error_body(reply.body) or ErrorBody(describe_body(reply))
    if reply.status == 413:  # a proxy in front of the server says only this, in HTML
        complaint = complaint._replace(words=(*complaint.words, "request_too_large"))
    if 300 <= reply.status < 400:
        return _redirect(reply)
    kind = _kind_of_status(reply.status)
    named = next((_WORDS[word.lower()] for word in complaint.words if word.lower() in _WORDS), None)
    is_good = 200 <= reply.status < 300
    if named in _PRECISE or (named is not None and is_good):
        kind = named
    elif is_good:
        kind = _kind_of_status(complaint.code) if complaint.code else "server"
    elif kind == "server" and _NO_IMAGES.search(complaint.message):
        kind = "unsupported"
    elif reply.status == 403 and _MODERATED.search(" ".join((complaint.message, *complaint.words))):
        kind = "content_filter"
    return explain(kind, complaint, reply)


def _redirect(reply: HttpReply) -> ModelError:
    """A redirect is not followed: it would send the key and the images elsewhere."""
    place = reply.headers.get("location", "")
    return ModelError(
        "bad_request",
        one_short_line(f"the server redirects to {place or 'another address'}, which is not followed"),
        status=reply.status,
        remedy="if that is the right server, give its address as --base-url",
    )


def explain(kind: ErrorKind, complaint: ErrorBody, reply: HttpReply) -> ModelError:
    """The error in the provider's words, with a remedy; the transport removes the key."""
    about = f"{complaint.message} {' '.join(complaint.words)}"
    remedy = ""
    if kind in ("bad_request", "unsupported"):
        remedy = next((flag for word, flag in _FLAGS if re.search(word, about, re.IGNORECASE)), "")
        if remedy and _NOT_TAKEN.search(about):
            kind = "unsupported"
    wait_s = read_retry_after(reply.headers)
    return ModelError(
        kind,
        one_short_line(complaint.message),
        status=reply.status,
        retry_after_s=complaint.retry_after_s if wait_s is None else wait_s,
        remedy=remedy,
    )


def find_error_body(body: bytes) -> ErrorBody | None:
    """The error inside a JSON body, whichever provider's form it has."""
    try:
        value = orjson.loads(body.removeprefix(BOM))
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, list) and value:  # Gemini sometimes wraps its error in a list
        value = value[0]
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if error is None and (value.get("object") == "error" or set(value) & {"detail", "message"}):
        error = value
    if isinstance(error, str):
        return ErrorBody(error)
    return _read_complaint(error) if isinstance(error, dict) and error else None


def _read_complaint(error: dict[str, Any]) -> ErrorBody:
    message = error.get("message") or error.get("detail") or ""
    named = [error.get(name) for name in ("code", "status", "type", "param")]
    code = error.get("code")
    return ErrorBody(
        message if isinstance(message, str) else orjson.dumps(message).decode(),
        tuple(word for word in named if isinstance(word, str)),
        code if isinstance(code, int) else None,
        _read_retry_info(error.get("details")),
    )


def _read_retry_info(details: Any) -> float | None:
    """Gemini's RetryInfo: `"retryDelay": "17s"`."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (match := re.fullmatch(r"(\d+(?:\.\d+)?)s", delay)):
            return float(match[1])
    return None


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait, from `retry-after-ms` or `retry-after` in seconds or as an HTTP date."""
    if (wait_ms := headers.get("retry-after-ms")) and re.fullmatch(r"\d{1,12}(\.\d{1,6})?", wait_ms):
        return float(wait_ms) / 1000
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", value):
        return float(value)
    until = _read_date(value)
    if until is None:
        return None
    # The server's own clock, if given: ours may be wrong.
    now = _read_date(headers.get("date", "")) or datetime.fromisoformat(now_utc())
    return max(0.0, (until - now).total_seconds())


def _read_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def describe_body(reply: HttpReply) -> str:
    """What came instead of an answer, in a few words."""
    media_type = reply.headers.get("content-type", "no content type").split(";")[0]
    if not reply.body.strip():
        return f"an empty body ({media_type})"
    start = reply.body[:200].decode("utf-8", "replace")
    if start.lstrip().startswith("<"):
        return f"an HTML page, not JSON ({media_type})"
    return f"not JSON in the expected form ({media_type}, {len(reply.body):,} bytes): {start}"


def one_short_line(text: str) -> str:
    """One line of limited length, without control characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= DETAIL_LENGTH else line[: DETAIL_LENGTH - 1] + "…"


def _kind_of_status(status: int) -> ErrorKind:
    if status in (401, 403):
        return "auth"
    if status in (408, 504):
        return "timeout"
    if status == 429:
        return "rate_limit"
    if status >= 500 or status in (409, 425):
        return "server"
    return "bad_request"
