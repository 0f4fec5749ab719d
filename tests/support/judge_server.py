"""A judge behind HTTP that reads the fence as a model would, and misbehaves on command."""

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FENCE = re.compile(r"BEGIN DATA ([0-9a-f]{32})\n(.*)\nEND DATA \1")
DIMENSIONS = (
    "disease_definition", "clinical_manifestation", "imaging_findings", "diagnostic_reasoning", "transferable_learning",
)  # fmt: skip

# What a reply is made from: the nonce, the data between the marks, and everything that stands outside of them.
Answer = Callable[[str, dict[str, Any], str], str]


class JudgeServer:
    """Chat Completions on loopback; `answer` writes the reply's text from nonce, data and the words around it.

    Requests that `fails` picks get an error instead.
    """

    def __init__(self, answer: Answer, *, finish_reason: str = "stop", model: str | None = None) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answer = answer
        self.fails: Callable[[dict[str, Any]], bool] | None = None
        self.complaint = "no"
        self.finish_reason = finish_reason
        self.model = model
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """Every model is known."""
                self.send({"object": "list", "data": []})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.bodies.append(body)
                if outer.fails is not None and outer.fails(body):
                    self.send({"error": {"message": outer.complaint}}, status=400)
                else:
                    self.send(outer.reply(body))

            def send(self, value: object, status: int = 200) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "JudgeServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        text = self.answer(*read_request(request_text(body)))
        message = {"role": "assistant", "content": text}
        model = f"{body['model']}-2026" if self.model is None else self.model
        return {
            "id": "j", "object": "chat.completion", "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }  # fmt: skip


def request_text(body: dict[str, Any]) -> str:
    """Every word of a request body, parts joined as a chat template would."""
    texts = []
    for message in body["messages"]:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        texts.append("\n\n".join(parts))
    return "\n\n".join(texts)


def read_request(text: str) -> tuple[str, dict[str, Any], str]:
    """The nonce, the data inside the fence, and the words outside of it."""
    fence = FENCE.search(text)
    assert fence is not None, "no fence in the request"
    return fence[1], json.loads(fence[2]), text[: fence.start()] + text[fence.end() :]


def step_verdict(unit: dict[str, str], **changes: Any) -> dict[str, Any]:
    verdict = {
        "id": unit["id"], "reason": "as the findings say", "rests_on": ["findings"], "factual": "supported",
        "weight": "incidental", "error_types": [], "severity": "not applicable", "correction": "",
    }  # fmt: skip
    return verdict | changes


def contradict(unit: dict[str, str], **changes: Any) -> dict[str, Any]:
    verdict = {
        "factual": "contradicted", "weight": "decisive", "error_types": ["image_understanding"],
        "severity": "significant", "correction": "It is otherwise.",
    }  # fmt: skip
    return step_verdict(unit, **(verdict | changes))


def judge_well(nonce: str, data: dict[str, Any], outside: str) -> str:
    """A good judge: a step that speaks of a WRONG thing is contradicted, all else is supported."""
    if "rationale" in data:
        return json.dumps({"call": nonce, "steps": re.findall(r"[^.]+\.", data["rationale"])})
    if "stated" in data:
        return json.dumps({"call": nonce, "findings": list_well(data)})
    units = data["units"]
    if '"preferred"' in outside:
        return json.dumps({"call": nonce, "verdicts": [prefer(units[0], data["author"]["text"])]})
    if '"missed"' in outside:
        verdicts = [
            {"id": u["id"], "reason": "so", "finding": look_for(u, data["author"]["text"][u["part"]])} for u in units
        ]
        return json.dumps({"call": nonce, "verdicts": verdicts})
    if '"label"' in outside:
        verdicts = [
            {"id": u["id"], "reason": "so", "label": "incorrect" if "WRONG" in u["text"] else "correct"} for u in units
        ]
        education = [{"dimension": name, "reason": "so", "score": 1, "zero": "not applicable"} for name in DIMENSIONS]
        return json.dumps({"call": nonce, "verdicts": verdicts, "education": education})
    if '"support"' in outside:
        verdicts = [{"id": u["id"], "reason": "so", "rests_on": ["findings"], "support": "supported"} for u in units]
        return json.dumps({"call": nonce, "verdicts": verdicts})
    return json.dumps({"call": nonce, "verdicts": [judge_step(unit) for unit in units]})


def list_well(data: dict[str, Any]) -> list[dict[str, str]]:
    """The texts of an expert as findings: each stated in its own words, and used in the diagnosis."""
    stated = list(data["stated"].items())[:3]
    return [
        {"finding": f"sign {text}", "where": where, "stated": text, "used": data["diagnosis"]} for where, text in stated
    ]


def prefer(unit: dict[str, str], texts: dict[str, str]) -> dict[str, str]:
    """The text with fewer WRONG words is better."""
    first, second = (texts[name].count("WRONG") for name in ("first", "second"))
    preferred = "tie" if first == second else "first" if first < second else "second"
    return {"id": unit["id"], "reason": "so", "preferred": preferred}


def look_for(unit: dict[str, str], text: str) -> str:
    return "mentioned" if unit["text"] in text else "contradicted" if "WRONG" in text else "missed"


def judge_step(unit: dict[str, str]) -> dict[str, Any]:
    if "WRONG" in unit["text"]:
        return contradict(unit)
    return step_verdict(unit)
