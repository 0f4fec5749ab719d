"""Use every addition of `additions.py`, in a package that has them: python use_additions.py FOLDER."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import further_text
from medthink.cli.command import run_command
from people import send
from reading_room import open_room
from small_benchmark import write_benchmark

SAID = {"answer": "A", "explanation": "A mass. It may grow.", "impression": "A mass."}


class Model(BaseHTTPRequestHandler):
    """Answers every chat with the same form, and keeps what it was asked."""

    asked: list[str] = []  # noqa: RUF012

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """A completion."""
        self.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._send({
            "id": "1", "object": "chat.completion", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1},
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(SAID)}}
            ],
        })  # fmt: skip

    def do_GET(self) -> None:
        """The models."""
        self._send({"object": "list", "data": [{"id": "m", "object": "model"}]})

    def _send(self, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def do(*words: object, code: int = 0) -> None:
    """Carry out a command."""
    found = run_command([str(word) for word in words])
    assert found == code, (words, found)


def use_in_a_run(root: Path, bench: Path) -> Path:
    """Provider, condition, task, prompt, metric, slice and figure: one run, scored and reported."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run, page = root / "run", root / "report.html"
    url = f"http://127.0.0.1:{server.server_port}/v1"
    words = ["--model", "echo/m", "--base-url", url, "--task", "impression", "--history-words", 3]
    do("run", bench, *words, "--out", run)
    server.shutdown()
    server.server_close()
    assert all("A patient, number" in one and "of the clinic" not in one and "Picture 1:" in one for one in Model.asked)
    assert "history words 3" in json.loads((run / "run.json").read_text())["condition_label"]
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    assert {(row["prediction"], row["texts"]["impression"]) for row in rows} == {("A", "A mass.")}
    do("score", run)
    scores = json.loads((run / "scores.json").read_text())
    (step,) = scores["steps"]
    assert step["step"] == "impression" and "same_length" in {one["metric"] for one in step["metrics"]}
    assert {one["value"] for one in scores["slices"] if one["by"] == "parity"} == {"0", "1"}
    do("report", run, "--out", page)
    text = page.read_text()
    assert "Cases by run" in text and "Impression" in text and "Same_length" in text
    return run


def use_in_a_study(root: Path, run: Path) -> None:
    """The kind of judging: on the form of a study, and on a reader's page."""
    with open_room(root, run, kinds=("certainty",)) as room:
        with room.board.client(room.cora) as client:
            assert "How sure each sentence sounds" in client.get("/studies/new").text
        with room.board.client(room.anna) as client:
            address = room.address("anna")
            client.get(address)
            send(client, f"{address}/commit", option="A", confidence="3", seconds="40")
            (text,) = client.get(f"{address}/state").json()["reveal"]["texts"]
    assert text["title"] == "Certainty"
    assert {field["name"] for item in text["items"] for field in item["fields"]} == {"certainty"}


def main(root: Path) -> None:
    """Every addition once."""
    bench = write_benchmark(root / "bench", cases=6)
    run = use_in_a_run(root, bench)
    do("hello")
    do("data", "check", bench)
    do("judge", run, "--judge", "baseline/rules", "--kinds", "certainty")
    assert {json.loads(line)["what"] for line in (run / "judgements.jsonl").read_text().splitlines()} == {"certainty"}
    (root / "room").mkdir()
    use_in_a_study(root / "room", run)
    do("curate", "short", bench / "test.jsonl", "--fewest", 40, "--work", root / "work")
    (root / "board").mkdir()
    further_text.main(root / "board")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
