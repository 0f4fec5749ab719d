"""Anthropic Message Batches: `POST /v1/messages/batches`, the requests in its body.

A job has no name and no metadata. One that may have been started is found among the jobs newer than the last known one,
by its number of requests; the keys of its results confirm it.
"""

from typing import Any

from medthink.core.jsonio import encode_json
from medthink.models.batches import (
    BatchJob,
    BatchLimits,
    BatchRequest,
    BatchRow,
    BodyTemplate,
    Dialogue,
    JobState,
    RequestFile,
    UnconfirmedJob,
)
from medthink.models.batches.replies import (
    JSON,
    as_reply,
    read_count,
    read_line,
    read_object,
    read_object_or_empty,
    read_pages,
    read_text_or_empty,
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


def submit(spool: RequestFile, mark: str) -> Dialogue[BatchJob]:  # noqa: ARG001
    """Start the job with all its requests."""
    frame = BodyTemplate(b'{"requests":[', b"]}", b",")
    return _read_job(read_object((yield BatchRequest("POST", _PATH, JSON, frame=frame, starts_job=True))))


def look(job_id: str) -> Dialogue[BatchJob]:
    """The state of a job."""
    return _read_job(read_object((yield BatchRequest("GET", f"{_PATH}/{job_id}"))))


def latest() -> Dialogue[str]:
    """The id of the newest job; empty when there is none."""
    page = read_object((yield BatchRequest("GET", f"{_PATH}?limit=1")))
    jobs = page.get("data") or [{}]
    return read_text_or_empty(read_object_or_empty(jobs[0]).get("id"))


def find(sought: UnconfirmedJob) -> Dialogue[list[BatchJob]]:
    """The jobs with as many requests that are newer than the newest before; those that ended first."""
    listed = yield from read_pages(_PATH, {"limit": "100"}, items="data", cursor="after_id")
    jobs = list(map(_read_job, listed))
    newer = next((number for number, job in enumerate(jobs) if job.id == sought.after), len(jobs))
    return sorted((job for job in jobs[:newer] if job.rows == sought.rows), key=lambda job: job.state != "ended")


def cancel(job_id: str) -> Dialogue[None]:
    """Cancel the job."""
    read_object((yield BatchRequest("POST", f"{_PATH}/{job_id}/cancel", JSON)))


def read_row(line: bytes) -> BatchRow:
    """Read a line of the results."""
    key, value = read_line(line, "custom_id")
    result = read_object_or_empty(value.get("result"))
    kind = read_text_or_empty(result.get("type"))
    if kind == "succeeded":
        return BatchRow(key, as_reply(200, result.get("message")))
    if kind in ("expired", "canceled"):
        return BatchRow(key, None, f"the request was {kind}")
    error = read_object_or_empty(result.get("error"))
    status = _STATUSES.get(read_text_or_empty(read_object_or_empty(error.get("error")).get("type")), 500)
    return BatchRow(key, as_reply(status, error or {"error": {"message": "no result"}}))


def _read_job(value: dict[str, Any]) -> BatchJob:
    word, counts = read_text_or_empty(value.get("processing_status")), read_object_or_empty(value.get("request_counts"))
    job_id = read_text_or_empty(value.get("id"))
    state = _STATES.get(word, "working")
    rows = sum(read_count(counts.get(name)) for name in _COUNTS)
    return BatchJob(
        id=job_id,
        state=state,
        word=word,
        rows=rows,
        done=rows - read_count(counts.get("processing")),
        # Not `results_url`: the key is sent only to the address that was given.
        results=(f"{_PATH}/{job_id}/results",) if state == "ended" else (),
        is_withheld=value.get("archived_at") is not None,
    )
