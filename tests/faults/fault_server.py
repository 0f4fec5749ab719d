"""A provider that misbehaves on command, on loopback, with its own count of what it saw.

It speaks Chat Completions, Responses, Anthropic Messages and Gemini, answers at once (or after a latency), and follows
a script of faults or draws them from a seed. As a program it prints its port and ends by itself:

    python tests/faults/fault_server.py --port 0 --seed 7 --fault-rate 0.3 --lifetime 120

`GET /_stats` returns its counts; `GET /_records` every request it saw, with the digests of its images; `GET /_open`
lets go the requests that it holds.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import random
import re
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

# Faults a retry survives. The others end a call, or change the answer, and are only given by script or by name.
TRANSIENT = (
    "429", "429-after", "500", "529", "reset", "drip", "hang", "truncated-body", "empty", "error-inside", "html",
    "wrong-type", "invalid-json",
)  # fmt: skip
FINAL = ("400", "401", "404", "refusal", "length", "filter", "blind", "quota", "unsupported", "redirect", "echo-key")
# Good answers in odd wrappings, and odd answers with a good status, by Chat Completions.
ODD = (
    "bom", "one-event", "line-twice", "half-character", "eos", "null-stop", "think", "tool-call", "think-alone",
    "zero-usage", "no-usage", "total-alone", "reasoning-beside", "two-answers", "stream",
)  # fmt: skip
FAULTS = (*TRANSIENT, *FINAL, *ODD)
# A judge asked to cut a rationale finds it as JSON inside the JSON of the request.
RATIONALE = re.compile(r'\{\\"rationale\\": \\"([^"\\]*)')


class FaultServer:
    """One listening server; `script` gives the fault of the n-th request ("" or nothing more is a good answer).

    Requests after the first `hold_after` are held, unanswered, until `open` is called or `hold_until` are in flight: a
    test of what is in flight need not hope that the machine is fast enough.
    """

    def __init__(
        self,
        *,
        script: list[str] | None = None,
        seed: int = 0,
        fault_rate: float = 0.0,
        faults: tuple[str, ...] = TRANSIENT,
        latency_s: float = 0.0,
        hang_s: float = 30.0,
        hold_after: int | None = None,
        hold_until: int | None = None,
    ) -> None:
        self.script = list(script or [])
        self.seed = seed
        self.fault_rate = fault_rate
        self.faults = faults
        self.latency_s = latency_s
        self.hang_s = hang_s
        self.hold_after = hold_after
        self.hold_until = hold_until
        self._opened = asyncio.Event()
        self.retry_after: dict[str, str] = {"Retry-After": "0.05"}
        self.records: list[dict[str, Any]] = []
        self.answered = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> int:
        return len(self.records)

    async def __aenter__(self) -> "FaultServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def open(self) -> None:
        """Let go what is held, and hold nothing more."""
        self._opened.set()

    def stats(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "answered": self.answered,
            "by_fault": dict(Counter(record["fault"] for record in self.records)),
            "images": sum(len(record["images"]) for record in self.records),
            "most_in_flight": self.most_in_flight,
            "connections": len(self._tasks),
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, _ = head.split(" ", 2)
        headers = {name.lower(): value for name, value in re.findall(r"(?m)^([\w-]+):[ \t]*(.*?)\r$", head)}
        if method == "GET":
            if path == "/_open":
                self.open()
            kinds = {"/_records": self.records, "/models": {"object": "list", "data": []}}
            value = next((value for end, value in kinds.items() if path.endswith(end)), self.stats())
            writer.write(http_bytes(200, json.dumps(value).encode()))
            await writer.drain()
            return True
        # The request counts from here: its head has arrived.
        record: dict[str, Any] = {"path": path, "fault": self._next_fault(), "images": [], "headers": headers}
        self.records.append(record)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            body = json.loads(await self._read_body(reader, headers))
            record["images"] = [hashlib.sha256(image).hexdigest() for image in find_images(body)]
            record["body"] = strip_images(body)
            if self.hold_after is not None and len(self.records) > self.hold_after:
                await self._hold()
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            return await self._answer(writer, record, body)
        finally:
            self.in_flight -= 1

    async def _hold(self) -> None:
        if self.hold_until is not None and self.in_flight >= self.hold_until:
            self.open()
        await self._opened.wait()

    async def _read_body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if "content-length" in headers:
            return await reader.readexactly(int(headers["content-length"]))
        body = b""
        while size := int((await reader.readline()).strip(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return body

    def _next_fault(self) -> str:
        number = len(self.records)
        if number < len(self.script):
            return self.script[number]
        chance = random.Random(f"{self.seed}:{number}")
        return chance.choice(self.faults) if chance.random() < self.fault_rate else ""

    async def _answer(self, writer: asyncio.StreamWriter, record: dict[str, Any], body: dict[str, Any]) -> bool:
        fault = record["fault"]
        if fault == "reset":
            _reset(writer)
            return False
        if fault == "hang":
            await asyncio.sleep(self.hang_s)
            return False
        reply = self._reply(fault, record, body)
        if fault == "drip":
            await self._drip(writer, reply)
            return False
        if fault == "truncated-body":
            reply = reply[:-40]
        if fault == "":
            self.answered += 1
        writer.write(reply)
        await writer.drain()
        return fault != "truncated-body"

    async def _drip(self, writer: asyncio.StreamWriter, reply: bytes) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.hang_s
        for position in range(len(reply) - 1):
            if loop.time() > end:
                return
            writer.write(reply[position : position + 1])
            await writer.drain()
            await asyncio.sleep(0.02)

    def _reply(self, fault: str, record: dict[str, Any], body: dict[str, Any]) -> bytes:
        """The whole HTTP reply for a fault, or for a good answer."""
        errors = {
            "429": (429, "rate_limit_error", "slow down"),
            "429-after": (429, "rate_limit_error", "slow down"),
            "500": (500, "server_error", "boom"),
            "529": (529, "overloaded_error", "overloaded"),
            "error-inside": (200, "server_error", "boom inside"),
            "400": (400, "invalid_request_error", "that is wrong"),
            "401": (401, "authentication_error", f"bad key {record['headers']}"),
            "404": (404, "not_found_error", "no such model"),
            "quota": (429, "insufficient_quota", "no credit"),
            "unsupported": (400, "invalid_request_error", "temperature is not supported"),
            "echo-key": (400, "invalid_request_error", f"you sent {record['headers']}"),
        }
        pages = {
            "empty": (200, b"", {}),
            "html": (200, b"<!doctype html><title>Bad gateway</title>", {"Content-Type": "text/html"}),
            "wrong-type": (200, b"event: ping\n\n", {"Content-Type": "text/event-stream"}),
            "redirect": (307, b"", {"Location": "http://127.0.0.1:9/elsewhere"}),
        }
        if fault in pages:
            status, page, headers = pages[fault]
            return http_bytes(status, page, headers)
        if fault in errors:
            status, kind, message = errors[fault]
            headers = self.retry_after if fault == "429-after" else {}
            return http_bytes(status, error_body(record["path"], kind, message, status), headers)
        return http_bytes(200, bend_body(fault, answer_body(fault, record, body)))


def answer_body(fault: str, record: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """An answer in the path's dialect; invented from the schema, and the same for the same request."""
    usage = (max(50, text_bytes(body) // 4) + 100 * (0 if fault == "blind" else len(record["images"])), 20)
    text = _invent_text(body)
    if fault == "invalid-json":
        text = text[: len(text) // 2] + " {"
    if fault == "refusal":
        text = "I cannot help with that."
    path = record["path"]
    if path.endswith("/chat/completions"):
        return _chat(fault, text, usage, body)
    if path.endswith("/responses"):
        return _responses(fault, text, usage, body)
    if path.split("?")[0].endswith("/messages"):
        return _anthropic(fault, text, usage, body)
    return _gemini(fault, text, usage, path)


def bend_body(fault: str, answer: dict[str, Any]) -> bytes:
    """The body of an answer as an odd server writes it."""
    if fault in ODD:
        _bend_chat(fault, answer)
    data = json.dumps(answer).encode()
    if fault == "two-answers":
        other = answer | {"id": "another"}
        return data + b"\n" + json.dumps(other).encode()
    if fault == "stream":
        chunk = {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "A"}}]}
        return b"".join(b"data: " + json.dumps(chunk | {"n": n}).encode() + b"\n\n" for n in range(3)) + b"data: [DONE]"
    wrapped = {
        "bom": b"\xef\xbb\xbf" + data,
        "one-event": b"data: " + data + b"\n\ndata: [DONE]\n\n",
        "line-twice": data + b"\n" + data,
        "half-character": data.replace(b'"model": "', rb'"model": "\ud83d'),
    }
    return wrapped.get(fault, data)


def _bend_chat(fault: str, answer: dict[str, Any]) -> None:
    choice, usage = answer["choices"][0], answer["usage"]
    text = choice["message"]["content"]
    if fault in ("eos", "null-stop"):
        choice["finish_reason"] = "eos" if fault == "eos" else None
    if fault in ("think", "think-alone"):
        choice["message"]["content"] = f"<think>hm</think>{text}" if fault == "think" else "<think>and so on"
    if fault == "tool-call":
        choice["message"]["content"], choice["finish_reason"] = None, "tool_calls"
    if fault in ("zero-usage", "no-usage", "total-alone"):
        counts = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)
        total = {"total_tokens": usage["total_tokens"]}
        answer["usage"] = {"zero-usage": counts, "no-usage": None, "total-alone": total}[fault]
    if fault == "reasoning-beside":
        usage["completion_tokens_details"]["reasoning_tokens"] = 900
        usage["total_tokens"] += 900


def _chat(fault: str, text: str, usage: tuple[int, int], body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    if fault == "refusal":
        message = {"role": "assistant", "content": None, "refusal": text}
    reason = {"length": "length", "filter": "content_filter"}.get(fault, "stop")
    return {
        "id": "c1", "object": "chat.completion", "created": 1, "model": body["model"] + "-2026-01-01",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage),
                  "prompt_tokens_details": {"cached_tokens": 10}, "completion_tokens_details": {"reasoning_tokens": 5}},
    }  # fmt: skip


def _responses(fault: str, text: str, usage: tuple[int, int], body: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "output_text", "text": text, "annotations": []}
    if fault == "refusal":
        content = {"type": "refusal", "refusal": text}
    reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(fault)
    return {
        "id": "r1", "object": "response", "created_at": 1, "model": body["model"] + "-2026-01-01", "error": None,
        "status": "incomplete" if reason else "completed", "incomplete_details": {"reason": reason} if reason else None,
        "output": [{"type": "reasoning", "id": "t1", "summary": [{"type": "summary_text", "text": "hm"}]},
                   {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [content]}],
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1], "total_tokens": sum(usage),
                  "input_tokens_details": {"cached_tokens": 10}, "output_tokens_details": {"reasoning_tokens": 5}},
    }  # fmt: skip


def _anthropic(fault: str, text: str, usage: tuple[int, int], body: dict[str, Any]) -> dict[str, Any]:
    reason = {"length": "max_tokens", "refusal": "refusal", "filter": "refusal"}.get(fault, "end_turn")
    return {
        "id": "m1", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": reason,
        "stop_sequence": None,
        "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": text}],
        "usage": {"input_tokens": usage[0] - 10, "cache_read_input_tokens": 10, "output_tokens": usage[1],
                  "output_tokens_details": {"thinking_tokens": 5}},
    }  # fmt: skip


def _gemini(fault: str, text: str, usage: tuple[int, int], path: str) -> dict[str, Any]:
    reason = {"length": "MAX_TOKENS", "refusal": "SAFETY", "filter": "SAFETY"}.get(fault, "STOP")
    name = path.rsplit("/", 1)[1].split(":")[0]
    return {
        "candidates": [{"index": 0, "finishReason": reason,
                        "content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": text}]}}],
        "usageMetadata": {"promptTokenCount": usage[0], "cachedContentTokenCount": 10,
                          "candidatesTokenCount": usage[1] - 5, "thoughtsTokenCount": 5},
        "modelVersion": name + "-001",
    }  # fmt: skip


def error_body(path: str, kind: str, message: str, code: int) -> bytes:
    """An error as the path's provider writes it."""
    if path.endswith("/messages"):
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    if ":generateContent" in path:
        return json.dumps({"error": {"code": code, "message": message, "status": kind.upper()}}).encode()
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": kind}}).encode()


def find_images(value: Any) -> Iterator[bytes]:
    """Every image of a request body, in order, whichever dialect it is in."""
    if isinstance(value, dict):
        if _is_source(value):
            yield _decode(value["data"])
            return
        for part in value.values():
            yield from find_images(part)
    elif isinstance(value, list):
        for part in value:
            yield from find_images(part)
    elif isinstance(value, str) and value.startswith("data:image/"):
        yield _decode(value.partition(",")[2])


def text_bytes(value: Any, name: str = "") -> int:
    """How many bytes of text a request body shows the model, whichever dialect it is in."""
    if isinstance(value, dict):
        return sum(text_bytes(part, name) for name, part in value.items())
    if isinstance(value, list):
        return sum(text_bytes(part, name) for part in value)
    is_shown = name in ("text", "content", "system", "instructions") and isinstance(value, str)
    return len(value.encode()) if is_shown else 0


def strip_images(value: Any) -> Any:
    """The body with a digest in the place of each image's data."""
    if isinstance(value, dict):
        if _is_source(value):
            return value | {"data": _digest(value["data"])}
        return {name: strip_images(part) for name, part in value.items()}
    if isinstance(value, list):
        return [strip_images(part) for part in value]
    if isinstance(value, str) and value.startswith("data:image/"):
        start, _, data = value.partition(",")
        return f"{start},{_digest(data)}"
    return value


def _is_source(value: dict[str, Any]) -> bool:
    return isinstance(value.get("data"), str) and bool({"media_type", "mimeType", "mime_type"} & set(value))


def _decode(data: str) -> bytes:
    return base64.b64decode(data.replace("-", "+").replace("_", "/"))


def _digest(data: str) -> str:
    return "sha256:" + hashlib.sha256(_decode(data)).hexdigest()


def _invent_text(body: dict[str, Any]) -> str:
    schema = _find_schema(body)
    if schema is None:
        return "Answer: A"
    text = json.dumps(strip_images(body), sort_keys=True)
    made = _invent(schema, random.Random(text))
    rationale = RATIONALE.search(text)
    if rationale is not None and "steps" in made:
        made["steps"] = re.findall(r"[^.]+\.", rationale[1])
    return json.dumps(made)


def _find_schema(body: dict[str, Any]) -> dict[str, Any] | None:
    paths = (
        ("response_format", "json_schema", "schema"),
        ("text", "format", "schema"),
        ("output_config", "format", "schema"),
        ("generationConfig", "responseJsonSchema"),
    )
    for path in paths:
        value: Any = body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def _invent(schema: dict[str, Any], chance: random.Random) -> Any:
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "anyOf" in schema:
        return _invent(schema["anyOf"][0], chance)
    kind = schema.get("type")
    if kind == "object":
        return _consistent({name: _invent(part, chance) for name, part in schema.get("properties", {}).items()})
    if kind == "array":
        ids = schema.get("items", {}).get("properties", {}).get("id", {}).get("enum")
        if ids is not None:
            # One verdict for each thing that is to be judged.
            return [_invent(schema["items"], chance) | {"id": one} for one in ids]
        count = max(1, schema.get("minItems", 1))
        return [_invent(schema.get("items", {"type": "string"}), chance) for _ in range(count)]
    simple = {"integer": chance.randint(1, 5), "number": chance.random(), "boolean": True, "null": None}
    return simple.get(kind, f"text {chance.randint(0, 999)}")


def _consistent(made: dict[str, Any]) -> dict[str, Any]:
    """Only what is contradicted holds an error, and only a score of 0 has a reason for it."""
    if "zero" in made:
        made = made | {"zero": "absent" if made["score"] == 0 else "not applicable"}
    if "factual" not in made:
        return made
    if made["factual"] == "contradicted":
        return made | {"error_types": ["reasoning"], "severity": "minor", "correction": "otherwise"}
    return made | {"error_types": [], "severity": "not applicable", "correction": ""}


def http_bytes(status: int, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Date": formatdate(usegmt=True)}
    head = "".join(f"{name}: {value}\r\n" for name, value in (lines | (headers or {})).items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _run(options: argparse.Namespace) -> None:
    server = FaultServer(
        script=options.script.split(",") if options.script else [],
        seed=options.seed,
        fault_rate=options.fault_rate,
        faults=tuple(options.faults.split(",")) if options.faults else TRANSIENT,
        latency_s=options.latency,
        hang_s=options.hang,
        hold_after=options.hold_after,
    )
    await server.start(options.port)
    print(server.port, flush=True)
    try:
        await asyncio.sleep(options.lifetime)
    finally:
        await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="a provider that misbehaves on command")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", default="", help="comma-separated: the fault of each request, in order")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault-rate", type=float, default=0.0)
    parser.add_argument("--faults", default="", help="comma-separated; default all transient ones")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every answer")
    parser.add_argument("--hang", type=float, default=30.0, help="how long a hanging or dripping reply lasts")
    parser.add_argument("--hold-after", type=int, help="hold all requests after so many until /_open is asked for")
    parser.add_argument("--lifetime", type=float, default=300.0, help="seconds until the server ends by itself")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
