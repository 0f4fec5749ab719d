"""Anthropic Message Batches: `POST /v1/messages/batches`, the requests in its body.

A job has no name and no metadata. One that may have been started is found among the jobs newer than the last known one,
by its number of requests; the keys of its results confirm it.
"""

from typing import Any

from medthink.core.jsonio import encode_json
from medthink.models.batches import BatchLimits, BatchRow, Dialogue, Errand, Frame, Job, JobState, Sought, Spool
from medthink.models.batches.replies import (
    JSON,
    as_reply,
    count_of,
    object_of,
    read_line,
    read_object,
    read_pages,
    text_of,
)
from medthink.models.wires import Encoded

# The provider accepts 256 MB.
LIMITS = BatchLimits(rows=100_000, size_bytes=240_000_000)
HAS_MARKS = False

_PATH = "/v1/messages/batches"
_STATES: dict[str, JobState] = {"ended": "ended"}
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
# The status that an error of this type has when it comes by HTTP.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def line(key: str, encoded: Encoded) -> list[bytes]:
    """One request, named by its key."""
    return [encode_json({"custom_id": key})[:-1] + b',"params":', *encoded.chunks, b"}\n"]


def submit(spool: Spool, mark: str) -> Dialogue[Job]:  # noqa: ARG001
    """Start the job with all its requests."""
    frame = Frame(b'{"requests":[', b"]}", b",")
    return _read_job(read_object((yield Errand("POST", _PATH, JSON, frame=frame, starts_job=True))))


def look(job_id: str) -> Dialogue[Job]:
    """How far a job is."""
    return _read_job(read_object((yield Errand("GET", f"{_PATH}/{job_id}"))))


def latest() -> Dialogue[str]:
    """The id of the newest job; empty when there is none."""
    page = read_object((yield Errand("GET", f"{_PATH}?limit=1")))
    jobs = page.get("data") or [{}]
    return text_of(object_of(jobs[0]).get("id"))


def find(sought: Sought) -> Dialogue[list[Job]]:
    """The jobs with as many requests that are newer than the newest before; those that ended first."""
    listed = yield from read_pages(_PATH, {"limit": "100"}, items="data", cursor="after_id")
    jobs = list(map(_read_job, listed))
    newer = next((number for number, job in enumerate(jobs) if job.id == sought.after), len(jobs))
    return sorted((job for job in jobs[:newer] if job.rows == sought.rows), key=lambda job: job.state != "ended")


def cancel(job_id: str) -> Dialogue[None]:
    """Ask that the job ends."""
    read_object((yield Errand("POST", f"{_PATH}/{job_id}/cancel", JSON)))


def read_row(line: bytes) -> BatchRow:
    """Read a line of the results."""
    key, value = read_line(line, "custom_id")
    result = object_of(value.get("result"))
    kind = text_of(result.get("type"))
    if kind == "succeeded":
        return BatchRow(key, as_reply(200, result.get("message")))
    if kind in ("expired", "canceled"):
        return BatchRow(key, None, f"the request was {kind}")
    error = object_of(result.get("error"))
    status = _STATUSES.get(text_of(object_of(error.get("error")).get("type")), 500)
    return BatchRow(key, as_reply(status, error or {"error": {"message": "no result"}}))


def _read_job(value: dict[str, Any]) -> Job:
    word, counts = text_of(value.get("processing_status")), object_of(value.get("request_counts"))
    job_id = text_of(value.get("id"))
    state = _STATES.get(word, "working")
    rows = sum(count_of(counts.get(name)) for name in _COUNTS)
    return Job(
        id=job_id,
        state=state,
        word=word,
        rows=rows,
        done=rows - count_of(counts.get("processing")),
        # Not `results_url`: the key is sent only to the address that was given.
        results=(f"{_PATH}/{job_id}/results",) if state == "ended" else (),
        is_withheld=value.get("archived_at") is not None,
    )
