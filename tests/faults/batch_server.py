"""The batches of OpenAI, Anthropic and Gemini on loopback, misbehaving on command, with an account of what was run.

Every job has a number. `faults` names what goes wrong with the job of that number, as words joined by "+":

    expire:N      the last N rows expire            partial:N   the last N rows are missing from the results
    error:N       the last N rows fail (HTTP 500)   bad:N       the last N rows are refused (HTTP 400)
    reject        the whole job is rejected         lost        it is started, and the reply never arrives
    dead          nothing is started, HTTP 500      cut         the first download of the results is cut off
    withheld      it ends and gives nothing out     slow        it ends when cancelled, or let go
    torn          one line of the results is never whole    flood   it is started, and the reply is no answer: 9 MB
    late:N        it has ended, and for N looks more its results are not there
    foreign       its results answer other requests         twice   one answer comes after an error for the same request
    bom           a byte-order mark before the results      gone    nobody knows the job any more (HTTP 404)
    midway        it fails when all of it was done          inline  its results are in the job, in no file (Gemini)

As a program it prints its port and ends by itself. `GET /_account` says what it saw.
"""

import argparse
import hashlib
import json
import random
import re
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fault_server import answer_body, find_images, strip_images


class FakeJob:
    """A job at the provider; `run` are the rows that it carries out, and is paid for."""

    def __init__(self, number: int, provider: str, mark: str, rows: dict[str, Any], path: str, fault: str) -> None:
        self.number = number
        self.id = f"batches/b{number}" if provider == "gemini" else f"batch_{number}"
        self.provider = provider
        self.mark = mark
        self.rows = rows
        self.path = path
        self.faults = {word.partition(":")[0]: int(word.partition(":")[2] or 1) for word in fault.split("+") if word}
        self.created = time.time()
        self.is_cancelled = False
        self.is_crowded = False
        self.downloads = 0
        self.looks = 0

    def is_over(self, latency_s: float) -> bool:
        return self.is_cancelled or ("slow" not in self.faults and time.time() >= self.created + latency_s)

    def has_files(self) -> bool:
        """Whether the results are there, at this look after the job's end."""
        self.looks += 1
        return self.looks > self.faults.get("late", 0)

    def fates(self) -> dict[str, str]:
        """What becomes of each row."""
        fate = dict.fromkeys(self.rows, "run")
        if self.is_crowded or "reject" in self.faults:
            return dict.fromkeys(fate, "never")
        if self.is_cancelled and "slow" in self.faults:
            # Half of them were done when it was cancelled.
            return {key: "run" if place % 2 else "expire" for place, key in enumerate(fate)}
        for word in ("expire", "partial", "error", "bad"):
            for key in list(fate)[-self.faults.get(word, 0) or len(fate) :]:
                fate[key] = word
        return fate


class _QuietServer(ThreadingHTTPServer):
    """Says nothing of a client that is killed in the middle."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class BatchServer:
    """One listening server for all three providers."""

    def __init__(
        self,
        *,
        faults: list[str] | None = None,
        latency_s: float = 0.0,
        token_cap: int | None = None,
        row_tokens: int = 600,
        seed: int = 0,
        port: int = 0,
    ) -> None:
        self.faults = list(faults or [])
        self.latency_s = latency_s
        self.token_cap = token_cap
        self.row_tokens = row_tokens
        self.jobs: list[FakeJob] = []
        self.files: dict[str, bytes] = {}
        self.online: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.chance = random.Random(seed)
        self.lock = threading.RLock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                outer.handle(self, b"")

            def do_POST(self) -> None:
                outer.handle(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            def log_message(self, *_: object) -> None:
                pass

        self._server = _QuietServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "BatchServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def end_slow_jobs(self) -> None:
        """Let the jobs end that were held by "slow"."""
        for job in self.jobs:
            job.faults.pop("slow", None)

    def account(self) -> dict[str, Any]:
        """How often each key was run, and all jobs."""
        fates = [job.fates() for job in self.jobs]
        run = Counter(key for one in fates for key, fate in one.items() if fate in ("run", "partial"))
        return {
            "requests": len(self.requests),
            "run": dict(run),
            "jobs": [{"rows": list(job.rows), "mark": job.mark} for job in self.jobs],
            "online": len(self.online),
        }  # fmt: skip

    def handle(self, http: BaseHTTPRequestHandler, body: bytes) -> None:
        parts = urlsplit(http.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/_account":
            self._say(http, 200, self.account())
            return
        with self.lock:
            self.requests.append(f"{http.command} {parts.path}")
            self._route(http, parts.path, query, body)

    def _route(self, http: BaseHTTPRequestHandler, path: str, query: dict[str, str], body: bytes) -> None:
        if http.command == "POST" and path.endswith(
            (":generateContent", "/chat/completions", "/responses", "/messages")
        ):
            self._answer_online(http, path, json.loads(body))
        elif path.startswith(("/v1/files", "/v1/batches")):
            self._openai(http, path.removeprefix("/v1"), query, body)
        elif path.startswith("/v1/messages/batches"):
            self._anthropic(http, path.removeprefix("/v1/messages/batches"), query, body)
        elif "v1beta" in path or path.startswith("/upload"):
            self._gemini(http, path, query, body)
        else:  # the list of models, or one of them
            self._say(http, 200, {"object": "list", "data": []})

    def _answer_online(self, http: BaseHTTPRequestHandler, path: str, body: dict[str, Any]) -> None:
        self.online.append(strip_images(body))
        self._say(http, 200, answer_body("", self._record(path, body), body))

    # OpenAI

    def _openai(self, http: BaseHTTPRequestHandler, path: str, query: dict[str, str], body: bytes) -> None:
        if http.command == "POST" and path == "/files":
            name = f"file-{len(self.files)}"
            self.files[name] = _read_form_file(body)
            self._say(http, 200, {"id": name, "object": "file", "bytes": len(body), "created_at": 1, "filename": "f",
                                  "purpose": "batch", "status": "processed"})  # fmt: skip
        elif http.command == "POST" and path == "/batches":
            order = json.loads(body)
            assert order["completion_window"] == "24h"
            lines = [json.loads(line) for line in self.files[order["input_file_id"]].splitlines()]
            assert all((one["method"], one["url"]) == ("POST", order["endpoint"]) for one in lines)
            rows = {one["custom_id"]: one["body"] for one in lines}
            assert len(rows) == len(lines), "a custom_id stands twice"
            self._start(http, "openai", (order.get("metadata") or {}).get("medthink", ""), rows, order["endpoint"])
        elif path == "/batches":
            self._list(http, query.get("after"), int(query.get("limit", 20)))
        elif match := re.fullmatch(r"/batches/([^/]+)(/cancel)?", path):
            self._show(http, match[1], is_cancelled=bool(match[2]))
        elif match := re.fullmatch(r"/files/(out|err)-(\d+)/content", path):
            self._download(http, self.jobs[int(match[2])], match[1])
        else:
            self._say(http, 404, {"error": {"message": "not here", "type": "not_found_error"}})

    def _openai_job(self, job: FakeJob) -> dict[str, Any]:
        over, fates = job.is_over(self.latency_s), Counter(job.fates().values())
        state = "completed" if over else "in_progress"
        if over and ("expire" in fates or "withheld" in job.faults):
            state = "cancelled" if job.is_cancelled else "expired"
        shown = {
            "id": job.id, "object": "batch", "endpoint": job.path, "input_file_id": "f", "completion_window": "24h",
            "created_at": int(job.created), "metadata": {"medthink": job.mark} if job.mark else None, "status": state,
            "request_counts": {"total": len(job.rows), "completed": fates["run"] if over else 0, "failed": 0},
        }  # fmt: skip
        if job.is_crowded or "reject" in job.faults:
            message = (
                f"Enqueued token limit reached for m in organization org-x. Limit: {self.token_cap:,} enqueued tokens."
                if job.is_crowded
                else "a line is not valid"
            )
            code = "token_limit_exceeded" if job.is_crowded else "invalid_json_line"
            errors = {"object": "list", "data": [{"code": code, "message": message, "line": None, "param": None}]}
            return shown | {"status": "failed", "errors": errors}
        if over and "withheld" not in job.faults and job.has_files():
            shown |= {"output_file_id": f"out-{job.number}", "error_file_id": f"err-{job.number}"}
        return shown

    def _openai_row(self, job: FakeJob, key: str, fate: str) -> tuple[str, dict[str, Any]] | None:
        line = {"id": f"r-{key[:6]}", "custom_id": key, "error": None}
        if fate == "run":
            response = {"status_code": 200, "request_id": "q", "body": self._answer(job, key)}
            return "out", line | {"response": response}
        if fate in ("error", "bad"):
            status, kind = (500, "server_error") if fate == "error" else (400, "invalid_request_error")
            body = {"error": {"message": "went wrong", "type": kind, "code": kind, "param": None}}
            return "err", line | {"response": {"status_code": status, "request_id": "q", "body": body}}
        code = "batch_cancelled" if job.is_cancelled else "batch_expired"
        error = {"code": code, "message": "This request could not be executed before the completion window expired."}
        return "err", line | {"response": None, "error": error}

    # Anthropic

    def _anthropic(self, http: BaseHTTPRequestHandler, path: str, query: dict[str, str], body: bytes) -> None:
        assert http.headers.get("anthropic-version")
        if http.command == "POST" and not path:
            lines = json.loads(body)["requests"]
            rows = {one["custom_id"]: one["params"] for one in lines}
            assert len(rows) == len(lines)
            assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", key) for key in rows)
            self._start(http, "anthropic", "", rows, "/v1/messages")
        elif not path:
            self._list(http, query.get("after_id"), int(query.get("limit", 20)))
        elif match := re.fullmatch(r"/([^/]+)(/cancel)?", path):
            self._show(http, match[1], is_cancelled=bool(match[2]))
        elif match := re.fullmatch(r"/batch_(\d+)/results", path):
            self._download(http, self.jobs[int(match[1])], "all")

    def _anthropic_job(self, job: FakeJob) -> dict[str, Any]:
        over, fates = job.is_over(self.latency_s), Counter(job.fates().values())
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        # The counts stay at 0 until the whole batch has ended.
        counts |= {"succeeded": len(job.rows) - fates["expire"], "expired": fates["expire"]} if over else {}
        counts |= {} if over else {"processing": len(job.rows)}
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(job.created))
        return {
            "id": job.id, "type": "message_batch", "processing_status": "ended" if over else "in_progress",
            "request_counts": counts, "created_at": stamp, "expires_at": stamp, "ended_at": stamp if over else None,
            "archived_at": None, "cancel_initiated_at": None,
            "results_url": f"https://elsewhere.invalid/{job.id}/results" if over else None,
        }  # fmt: skip

    def _anthropic_row(self, job: FakeJob, key: str, fate: str) -> dict[str, Any]:
        if fate == "run":
            result: dict[str, Any] = {"type": "succeeded", "message": self._answer(job, key)}
        elif fate in ("error", "bad"):
            kind = "api_error" if fate == "error" else "invalid_request_error"
            error = {"type": "error", "error": {"type": kind, "message": "went wrong"}, "request_id": "q"}
            result = {"type": "errored", "error": error}
        else:
            result = {"type": "canceled" if job.is_cancelled else "expired"}
        return {"custom_id": key, "result": result}

    # Gemini

    def _gemini(self, http: BaseHTTPRequestHandler, path: str, query: dict[str, str], body: bytes) -> None:
        if path == "/upload/v1beta/files" and "upload_id" not in query:
            assert http.headers["X-Goog-Upload-Command"] == "start"
            place = f"{self.url}{path}?upload_id={http.headers['X-Goog-Upload-Header-Content-Length']}"
            self._say(http, 200, {}, {"X-Goog-Upload-URL": place, "X-Goog-Upload-Status": "active"})
        elif path == "/upload/v1beta/files":
            assert int(query["upload_id"]) == len(body)
            name = f"files/in{len(self.files)}"
            self.files[name] = body
            self._say(http, 200, {"file": {"name": name}}, {"X-Goog-Upload-Status": "final"})
        elif path.endswith(":batchGenerateContent"):
            order = json.loads(body)["batch"]
            lines = [json.loads(line) for line in self.files[order["inputConfig"]["fileName"]].splitlines()]
            rows = {one["key"]: one["request"] for one in lines}
            assert len(rows) == len(lines)
            self._start(http, "gemini", order["displayName"], rows, path)
        elif path == "/v1beta/batches":
            self._list(http, query.get("pageToken"), int(query.get("pageSize", 20)))
        elif match := re.fullmatch(r"/v1beta/(batches/b\d+)(:cancel)?", path):
            self._show(http, match[1], is_cancelled=bool(match[2]))
        elif match := re.fullmatch(r"/v1beta/files/out(\d+):download", path):
            self._download(http, self.jobs[int(match[1])], "all")

    def _gemini_job(self, job: FakeJob) -> dict[str, Any]:
        over = job.is_over(self.latency_s)
        state = "SUCCEEDED" if over else "RUNNING"
        if over and "withheld" in job.faults:
            state = "EXPIRED"
        if "reject" in job.faults:
            state = "FAILED"
        about = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "displayName": job.mark, "state": f"BATCH_STATE_{state}", "createTime": "2026-11-17T00:00:00Z",
            "batchStats": {"requestCount": str(len(job.rows))}, "name": job.id,
        }  # fmt: skip
        if over and "midway" in job.faults:
            state = about["state"] = "FAILED"
            about["batchStats"] |= {"successfulRequestCount": str(len(job.rows))}
        if state == "SUCCEEDED" and "inline" in job.faults:
            rows = [{"response": self._answer(job, key)} for key, fate in job.fates().items() if fate == "run"]
            about["output"] = {"inlinedResponses": {"inlinedResponses": rows}}
        elif state == "SUCCEEDED" and job.has_files():
            about["output"] = {"responsesFile": f"files/out{job.number}"}
        error = {"error": {"code": 3, "message": "a line is not valid"}} if state == "FAILED" else {}
        return {"name": job.id, "metadata": about, "done": over} | error

    def _gemini_row(self, job: FakeJob, key: str, fate: str) -> dict[str, Any]:
        if fate == "run":
            return {"key": key, "response": self._answer(job, key)}
        codes = {"error": (13, "INTERNAL"), "bad": (3, "INVALID_ARGUMENT"), "expire": (1, "CANCELLED")}
        code, status = codes[fate]
        return {"key": key, "error": {"code": code, "message": "went wrong", "status": status}}

    # What they have in common

    def _start(self, http: BaseHTTPRequestHandler, provider: str, mark: str, rows: dict[str, Any], path: str) -> None:
        number = len(self.jobs)
        fault = self.faults.pop(0) if self.faults else ""
        if "dead" in fault:
            self._say(http, 500, {"error": {"message": "boom", "type": "server_error"}})
            return
        job = FakeJob(number, provider, mark, rows, path, fault)
        if self.token_cap is not None:
            queued = sum(len(one.rows) for one in self.jobs if not one.is_over(self.latency_s) and not one.is_crowded)
            job.is_crowded = (queued + len(rows)) * self.row_tokens > self.token_cap
        self.jobs.append(job)
        if "lost" in job.faults:
            http.close_connection = True
            return
        self._say(http, 200, self._job(job) | ({"x": "x" * 9_000_000} if "flood" in job.faults else {}))

    def _job(self, job: FakeJob) -> dict[str, Any]:
        made: dict[str, Any] = getattr(self, f"_{job.provider}_job")(job)
        return made

    def _show(self, http: BaseHTTPRequestHandler, job_id: str, *, is_cancelled: bool) -> None:
        job = next(one for one in self.jobs if one.id == job_id)
        if "gone" in job.faults:
            self._say(
                http, 404, {"error": {"message": f"No batch found with id '{job_id}'.", "type": "not_found_error"}}
            )
            return
        job.is_cancelled |= is_cancelled
        self._say(http, 200, self._job(job))

    def _list(self, http: BaseHTTPRequestHandler, after: str | None, limit: int) -> None:
        """The newest first, two on a page at most."""
        jobs = list(reversed(self.jobs))
        start = 1 + [one.id for one in jobs].index(after) if after else 0
        page = jobs[start : start + min(limit, 2)]
        shown, has_more = [self._job(one) for one in page], start + len(page) < len(jobs)
        last = page[-1].id if page else None
        more = {"nextPageToken": last} if has_more else {}
        listed = {"object": "list", "data": shown, "has_more": has_more, "first_id": None, "last_id": last}
        self._say(http, 200, listed | {"operations": shown} | more)

    def _download(self, http: BaseHTTPRequestHandler, job: FakeJob, which: str) -> None:
        lines = []
        for key, fate in job.fates().items():
            if fate == "partial":
                continue
            row = getattr(self, f"_{job.provider}_row")(job, key, fate)
            if isinstance(row, tuple):
                if row[0] != which:
                    continue
                row = row[1]
            if "foreign" in job.faults:
                row |= {name: f"other-{row[name]}" for name in ("custom_id", "key") if name in row}
            lines.append(json.dumps(row).encode() + b"\n")
        self.chance.shuffle(lines)
        if "twice" in job.faults and lines:
            failed = getattr(self, f"_{job.provider}_row")(job, next(iter(job.rows)), "error")
            lines.insert(0, json.dumps(failed[1] if isinstance(failed, tuple) else failed).encode() + b"\n")
        data = b"".join(lines)
        if "bom" in job.faults:
            data = b"\xef\xbb\xbf" + data
        if "torn" in job.faults and lines:
            data = data[: -len(lines[-1]) // 2]
        job.downloads += 1
        if "cut" in job.faults and job.downloads == 1:
            http.send_response(200)
            http.send_header("Content-Length", str(len(data) + 1))
            http.end_headers()
            http.wfile.write(data[: len(data) // 2])
            http.close_connection = True
            return
        self._send(http, 200, data)

    def _answer(self, job: FakeJob, key: str) -> dict[str, Any]:
        path = job.path.replace(":batchGenerateContent", ":generateContent")
        return answer_body("", self._record(path, job.rows[key]), job.rows[key])

    def _record(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"path": path, "images": [hashlib.sha256(image).hexdigest() for image in find_images(body)]}

    def _say(
        self, http: BaseHTTPRequestHandler, status: int, value: Any, headers: dict[str, str] | None = None
    ) -> None:
        self._send(http, status, json.dumps(value).encode(), headers)

    def _send(
        self, http: BaseHTTPRequestHandler, status: int, data: bytes, headers: dict[str, str] | None = None
    ) -> None:
        http.send_response(status)
        for name, value in (
            {"Content-Type": "application/json", "Content-Length": str(len(data))} | (headers or {})
        ).items():
            http.send_header(name, value)
        http.end_headers()
        http.wfile.write(data)


def _read_form_file(body: bytes) -> bytes:
    """The file of a form with a purpose and a file."""
    boundary = body[: body.index(b"\r\n")]
    fields = [part for part in body.split(boundary) if b"Content-Disposition" in part]
    assert any(b'name="purpose"' in field and b"batch" in field for field in fields)
    whole = next(field for field in fields if b'name="file"' in field)
    return whole.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="batches of three providers, misbehaving on command")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", default="", help="comma-separated: what goes wrong with each job, in order")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that a job takes")
    parser.add_argument("--token-cap", type=int, default=None)
    parser.add_argument("--lifetime", type=float, default=300.0, help="seconds until the server ends by itself")
    options = parser.parse_args()
    faults = options.faults.split(",") if options.faults else []
    with BatchServer(
        faults=faults, latency_s=options.latency, token_cap=options.token_cap, port=options.port
    ) as server:
        print(server.url.rpartition(":")[2], flush=True)
        time.sleep(options.lifetime)


if __name__ == "__main__":
    main()
