"""OpenAI Batch: a file of Chat Completions or Responses requests, and `POST /batches`. vLLM reads the same file."""

import re
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
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.failures import find_error_body, one_short_line

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


def submit(spool: RequestFile, mark: str) -> Dialogue[BatchJob]:
    """Upload the file, then start the job."""
    uploaded = read_object((yield _upload(mark)))
    order = {
        "input_file_id": read_text_or_empty(uploaded.get("id")),
        "endpoint": f"/v1{spool.path}",
        "completion_window": "24h",
        "metadata": {"medthink": mark},
    }
    reply = yield BatchRequest("POST", "/batches", JSON, encode_json(order), starts_job=True)
    return _refused(reply) or _read_job(read_object(reply))


def look(job_id: str) -> Dialogue[BatchJob]:
    """The state of a job."""
    return _read_job(read_object((yield BatchRequest("GET", f"/batches/{job_id}"))))


def latest() -> Dialogue[str]:
    """Not needed: a job carries its mark."""
    return ""
    yield


def find(sought: UnconfirmedJob) -> Dialogue[list[BatchJob]]:
    """The job with the mark."""
    listed = yield from read_pages("/batches", {"limit": "100"}, items="data", cursor="after")
    return [job for job in map(_read_job, listed) if job.mark == sought.mark]


def cancel(job_id: str) -> Dialogue[None]:
    """Cancel the job."""
    read_object((yield BatchRequest("POST", f"/batches/{job_id}/cancel", JSON)))


def read_row(line: bytes) -> BatchRow:
    """Read a line of the output or of the error file."""
    key, value = read_line(line, "custom_id")
    error, response = read_object_or_empty(value.get("error")), read_object_or_empty(value.get("response"))
    status = read_count(response.get("status_code"))
    if response.get("body") is not None:
        return BatchRow(key, as_reply(status or 200, response["body"]))
    code = read_text_or_empty(error.get("code"))
    if code in ("batch_expired", "batch_cancelled"):
        return BatchRow(key, None, one_short_line(read_text_or_empty(error.get("message")) or code))
    return BatchRow(key, as_reply(status if status >= 400 else 500, {"error": error or {"message": "no response"}}))


def _upload(mark: str) -> BatchRequest:
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{mark}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    frame = BodyTemplate(head.encode(), f"\r\n--{_BOUNDARY}--\r\n".encode())
    return BatchRequest("POST", "/files", {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}, frame=frame)


def _refused(reply: HttpReply) -> BatchJob | None:
    """A job not started because the account's queue is full."""
    complaint = find_error_body(reply.body) if reply.status >= 400 else None
    problem = "" if complaint is None else f"{complaint.message} {' '.join(complaint.words)}"
    return _crowded("", problem) if _CROWDED.search(problem) else None


def _read_job(value: dict[str, Any]) -> BatchJob:
    word = read_text_or_empty(value.get("status"))
    state = _STATES.get(word, "working")
    if state == "rejected":
        problem = _read_errors(value.get("errors"))
        if _CROWDED.search(problem):
            return _crowded(read_text_or_empty(value.get("id")), problem)
        return BatchJob(id=read_text_or_empty(value.get("id")), state=state, word=word, problem=problem)
    metadata, counts = read_object_or_empty(value.get("metadata")), read_object_or_empty(value.get("request_counts"))
    files = [read_text_or_empty(value.get(name)) for name in ("output_file_id", "error_file_id")]
    done = read_count(counts.get("completed")) + read_count(counts.get("failed"))
    return BatchJob(
        id=read_text_or_empty(value.get("id")),
        state=state,
        word=word,
        mark=read_text_or_empty(metadata.get("medthink")),
        rows=read_count(counts.get("total")) or None,
        done=done,
        results=tuple(f"/files/{name}/content" for name in files if name),
        # The state is seen to change before the files' ids are there.
        is_withheld=state == "ended" and not any(files) and (done > 0 or word == "completed"),
    )


def _crowded(job_id: str, problem: str) -> BatchJob:
    found = _CAP.search(problem)
    cap = int(found[1].replace(",", "")) if found else None
    return BatchJob(
        id=job_id,
        state="rejected",
        word="failed",
        problem=one_short_line(problem),
        is_crowded=True,
        token_cap=cap or None,
    )


def _read_errors(errors: Any) -> str:
    listed = read_object_or_empty(errors).get("data")
    told = [
        f"{read_text_or_empty(one.get('message'))} ({read_text_or_empty(one.get('code'))})"
        for one in listed or ()
        if isinstance(one, dict)
    ]
    return one_short_line("; ".join(dict.fromkeys(told)) or "no reason is given")
