"""OpenAI Batch: a file of Chat Completions or Responses requests, and `POST /batches`. vLLM reads the same file."""

import re
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
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.failures import find_complaint, shorten

# The provider accepts 200 MB.
LIMITS = BatchLimits(rows=50_000, size_bytes=190_000_000)
HAS_MARKS = True

_STATES: dict[str, JobState] = {
    "failed": "rejected",
    "completed": "ended",
    "expired": "ended",
    "cancelled": "ended",
}
_CROWDED = re.compile(r"token_limit_exceeded|enqueued token limit", re.IGNORECASE)
_CAP = re.compile(r"limit:?\s*([\d,]{4,})", re.IGNORECASE)
_BOUNDARY = "medthink-9f1c7a52d0e84b36"


def line(key: str, encoded: Encoded) -> list[bytes]:
    """One request, named by its key."""
    head = encode_json({"custom_id": key, "method": "POST", "url": f"/v1{encoded.path}"})
    return [head[:-1] + b',"body":', *encoded.chunks, b"}\n"]


def submit(spool: Spool, mark: str) -> Dialogue[Job]:
    """Upload the file, then start the job."""
    uploaded = read_object((yield _upload(mark)))
    order = {
        "input_file_id": text_of(uploaded.get("id")),
        "endpoint": f"/v1{spool.path}",
        "completion_window": "24h",
        "metadata": {"medthink": mark},
    }
    reply = yield Errand("POST", "/batches", JSON, encode_json(order), starts_job=True)
    return _refused(reply) or _read_job(read_object(reply))


def look(job_id: str) -> Dialogue[Job]:
    """How far a job is."""
    return _read_job(read_object((yield Errand("GET", f"/batches/{job_id}"))))


def latest() -> Dialogue[str]:
    """Not needed: a job carries its mark."""
    return ""
    yield


def find(sought: Sought) -> Dialogue[list[Job]]:
    """The job with the mark."""
    listed = yield from read_pages("/batches", {"limit": "100"}, items="data", cursor="after")
    return [job for job in map(_read_job, listed) if job.mark == sought.mark]


def cancel(job_id: str) -> Dialogue[None]:
    """Ask that the job ends."""
    read_object((yield Errand("POST", f"/batches/{job_id}/cancel", JSON)))


def read_row(line: bytes) -> BatchRow:
    """Read a line of the output or of the error file."""
    key, value = read_line(line, "custom_id")
    error, response = object_of(value.get("error")), object_of(value.get("response"))
    status = count_of(response.get("status_code"))
    if response.get("body") is not None:
        return BatchRow(key, as_reply(status or 200, response["body"]))
    code = text_of(error.get("code"))
    if code in ("batch_expired", "batch_cancelled"):
        return BatchRow(key, None, shorten(text_of(error.get("message")) or code))
    return BatchRow(key, as_reply(status if status >= 400 else 500, {"error": error or {"message": "no response"}}))


def _upload(mark: str) -> Errand:
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{mark}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    frame = Frame(head.encode(), f"\r\n--{_BOUNDARY}--\r\n".encode())
    return Errand("POST", "/files", {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}, frame=frame)


def _refused(reply: HttpReply) -> Job | None:
    """A job not started because the account's queue is full."""
    complaint = find_complaint(reply.body) if reply.status >= 400 else None
    problem = "" if complaint is None else f"{complaint.message} {' '.join(complaint.words)}"
    return _crowded("", problem) if _CROWDED.search(problem) else None


def _read_job(value: dict[str, Any]) -> Job:
    word = text_of(value.get("status"))
    state = _STATES.get(word, "working")
    if state == "rejected":
        problem = _read_errors(value.get("errors"))
        if _CROWDED.search(problem):
            return _crowded(text_of(value.get("id")), problem)
        return Job(id=text_of(value.get("id")), state=state, word=word, problem=problem)
    metadata, counts = object_of(value.get("metadata")), object_of(value.get("request_counts"))
    files = [text_of(value.get(name)) for name in ("output_file_id", "error_file_id")]
    return Job(
        id=text_of(value.get("id")),
        state=state,
        word=word,
        mark=text_of(metadata.get("medthink")),
        rows=count_of(counts.get("total")) or None,
        done=count_of(counts.get("completed")) + count_of(counts.get("failed")),
        results=tuple(f"/files/{name}/content" for name in files if name),
    )


def _crowded(job_id: str, problem: str) -> Job:
    found = _CAP.search(problem)
    cap = int(found[1].replace(",", "")) if found else None
    return Job(
        id=job_id, state="rejected", word="failed", problem=shorten(problem), is_crowded=True, token_cap=cap or None
    )


def _read_errors(errors: Any) -> str:
    listed = object_of(errors).get("data")
    told = [
        f"{text_of(one.get('message'))} ({text_of(one.get('code'))})" for one in listed or () if isinstance(one, dict)
    ]
    return shorten("; ".join(dict.fromkeys(told)) or "no reason is given")
