"""Gemini batches: a file through the Files API, and `POST MODEL:batchGenerateContent`, both under v1beta."""

from typing import Any
from urllib.parse import urlsplit

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
from medthink.models.request import ModelError
from medthink.models.wires import Encoded
from medthink.models.wires.failures import failure_of, one_short_line

# The provider accepts files of 2 GB and names no limit on rows.
LIMITS = BatchLimits(rows=100_000, size_bytes=1_500_000_000)
HAS_MARKS = True

_API = "/v1beta"
_STATES: dict[str, JobState] = {
    "SUCCEEDED": "ended",
    "PARTIALLY_SUCCEEDED": "ended",
    "CANCELLED": "ended",
    "EXPIRED": "ended",
    "FAILED": "rejected",
}
# The HTTP status for a code of google.rpc.Status; 1 is "cancelled".
_STATUSES = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}


def line(key: str, encoded: Encoded) -> list[bytes]:
    """One request, named by its key."""
    return [encode_json({"key": key})[:-1] + b',"request":', *encoded.chunks, b"}\n"]


def submit(spool: RequestFile, mark: str) -> Dialogue[BatchJob]:
    """Upload the file in one piece, then start the job."""
    place = yield BatchRequest(
        "POST",
        f"/upload{_API}/files",
        JSON
        | {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(spool.size_bytes),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        },
        encode_json({"file": {"displayName": mark}}),
    )
    if place.status >= 400:
        raise failure_of(place)
    upload = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
    reply = yield BatchRequest(
        "POST", _below_base(place.headers.get("x-goog-upload-url", "")), upload, frame=BodyTemplate()
    )
    file = read_object_or_empty(read_object(reply).get("file"))
    order = {
        "batch": {"displayName": mark, "inputConfig": {"fileName": read_text_or_empty(file.get("name"))}},
    }
    path = f"{_API}/models/{_model_of(spool.path)}:batchGenerateContent"
    return _read_job(read_object((yield BatchRequest("POST", path, JSON, encode_json(order), starts_job=True))))


def look(job_id: str) -> Dialogue[BatchJob]:
    """The state of a job."""
    return _read_job(read_object((yield BatchRequest("GET", f"{_API}/{job_id}"))))


def latest() -> Dialogue[str]:
    """Not needed: a job carries its mark."""
    return ""
    yield


def find(sought: UnconfirmedJob) -> Dialogue[list[BatchJob]]:
    """The job with the mark."""
    listed = yield from read_pages(f"{_API}/batches", {"pageSize": "100"}, items="operations", cursor="pageToken")
    return [job for job in map(_read_job, listed) if job.mark == sought.mark]


def cancel(job_id: str) -> Dialogue[None]:
    """Cancel the job."""
    read_object((yield BatchRequest("POST", f"{_API}/{job_id}:cancel", JSON, b"{}")))


def read_row(line: bytes) -> BatchRow:
    """Read a line of the results."""
    key, value = read_line(line, "key")
    if isinstance(value.get("response"), dict):
        return BatchRow(key, as_reply(200, value["response"]))
    error = read_object_or_empty(value.get("error"))
    code = read_count(error.get("code"))
    if code == 1:
        return BatchRow(key, None, "the request was cancelled")
    status = code if code >= 400 else _STATUSES.get(code, 500)
    return BatchRow(key, as_reply(status, {"error": error or {"message": "no response"}}))


def _model_of(path: str) -> str:
    """The model's name in the path of a single request."""
    return path.rsplit("/", 1)[1].removesuffix(":generateContent")


def _below_base(address: str) -> str:
    """The upload's path: the key is sent only to the address that was given."""
    parts = urlsplit(address)
    if not parts.path:
        raise ModelError("invalid_reply", "the Files API gave no upload address")
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _read_job(value: dict[str, Any]) -> BatchJob:
    about = read_object_or_empty(value.get("metadata"))
    word = read_text_or_empty(about.get("state")).removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    counts, outputs = read_object_or_empty(about.get("batchStats")), [about.get("output"), value.get("response")]
    files = [read_text_or_empty(read_object_or_empty(one).get("responsesFile")) for one in outputs]
    state = _STATES.get(word, "working")
    done = read_count(counts.get("successfulRequestCount")) + read_count(counts.get("failedRequestCount"))
    is_done = done > 0 or not counts or "SUCCEEDED" in word
    return BatchJob(
        id=read_text_or_empty(value.get("name")),
        state=state,
        word=word.lower(),
        mark=read_text_or_empty(about.get("displayName")),
        rows=read_count(counts.get("requestCount")) or None,
        done=done,
        results=tuple(f"{_API}/{name}:download?alt=media" for name in dict.fromkeys(files) if name),
        problem=one_short_line(read_text_or_empty(read_object_or_empty(value.get("error")).get("message"))),
        is_withheld=state != "working" and not any(files) and is_done,
    )
