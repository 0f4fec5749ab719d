"""The first minute: a wrong set-up is told at once, with the remedy, and nothing is recorded as failed."""

import asyncio
import contextlib
import json
import re
import shlex
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fault_server import FaultServer

from ledger_rows import read_rows
from medthink.core.errors import OutsideError
from medthink.models.catalog import open_model
from processes import finish, medthink, wait_until
from small_benchmark import write_benchmark


class Odd(BaseHTTPRequestHandler):
    """A server with a list of models under /v1, which wants a key where the server object has one."""

    def do_GET(self) -> None:
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self.reply(401, {"error": {"message": f"Incorrect API key: {self.headers.get('Authorization')}"}})
        elif self.path == "/v1/models" and self.server.models:
            self.reply(200, {"object": "list", "data": [{"id": name} for name in self.server.models]})
        else:
            self.reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.moved_to:
            self.send_response(308)
            self.send_header("Location", self.server.moved_to + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.reply(404, {"error": {"message": "The model does not exist", "type": "NotFoundError"}})

    def reply(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextlib.contextmanager
def serving(
    key: str = "", models: tuple[str, ...] = ("qwen-vl-7b", "qwen-vl-72b"), moved_to: str = ""
) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    server.key, server.models, server.moved_to = key, models, moved_to
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def start(tmp_path, url: str, *more: object, model: str = "server/qwen-vl-7b", key: str = "") -> tuple[int, str]:
    bench = write_benchmark(tmp_path / "bench", cases=30)
    words = ("run", bench, "--model", model, "--base-url", url, "--out", tmp_path / "run", *more)
    code, _, err = finish(medthink(*words, env={"MEDTHINK_SERVER_KEY": key}))
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists(), "nothing was asked, and nothing is recorded"
    return code, err


def test_a_dead_server_is_told_at_once(tmp_path):
    with serving() as url:
        pass
    code, err = start(tmp_path, f"{url}/v1")
    assert (code, f"no server answers at {url}/v1" in err, "check --base-url" in err) == (3, True, True)


def test_a_missing_v1_is_told_with_the_right_address(tmp_path):
    with serving() as url:
        code, err = start(tmp_path, url)
    assert (code, f"give --base-url {url}/v1" in err) == (3, True)


def test_a_wrong_model_is_told_with_those_that_there_are(tmp_path):
    with serving() as url:
        code, err = start(tmp_path, f"{url}/v1", model="server/qwen-vl-7")
    assert (code, "does not serve the model qwen-vl-7: it has qwen-vl-7b, qwen-vl-72b" in err) == (3, True)


@pytest.mark.parametrize("key", ["sk-wrong-0123456789", ""])
def test_a_wrong_or_missing_key_is_told_and_not_shown(tmp_path, key):
    with serving(key="sk-right-0123456789") as url:
        code, err = start(tmp_path, f"{url}/v1", key=key)
    assert code == 3
    assert "MEDTHINK_SERVER_KEY" in err
    assert "sk-wrong" not in err


def test_an_address_that_is_no_model_server_is_told(tmp_path):
    with serving() as url:
        code, err = start(tmp_path, f"{url}/elsewhere")
    assert (code, "there is no model server at" in err) == (3, True)


def test_a_server_that_has_moved_is_told_with_its_new_address(tmp_path):
    with serving(models=(), moved_to="https://there.example") as url:
        code, err = start(tmp_path, f"{url}/v1")
    assert (code, f"{url}/v1 redirects to https://there.example/v1, which is not followed" in err) == (3, True)


def check(url: str, model: str) -> list[str]:
    async def scene() -> list[str]:
        async with open_model(model, base_urls=(url,), env={"OPENAI_API_KEY": "sk-0123456789ab"}) as opened:
            return await opened.check()

    return asyncio.run(scene())


@pytest.mark.parametrize("provider", ["server", "openai-chat"])
def test_a_list_of_models_that_arrives_in_pieces_is_read_whole(provider):
    names = tuple(f"vendor/model-of-a-long-list-{number:05}" for number in range(6_000))
    with serving(models=(*names, "qwen-vl-7b")) as url:
        assert check(f"{url}/v1", f"{provider}/qwen-vl-7b") == []
        with pytest.raises(OutsideError, match=r"the model qwen-vl-8b.*qwen-vl-7b"):
            check(f"{url}/v1", f"{provider}/qwen-vl-8b")


def test_https_to_a_plain_server_names_the_address_to_try():
    with serving() as url:
        with pytest.raises(OutsideError, match="does not speak https") as caught:
            check(f"https://{url.removeprefix('http://')}/v1", "server/qwen-vl-7b")
        assert caught.value.remedy == f"try --base-url {url}/v1"


def test_https_to_a_plain_server_that_stays_silent_names_the_address_too(monkeypatch):
    """Such a server waits for the end of a request that it cannot read; over http it is asked without the key."""
    monkeypatch.setattr("medthink.models.server_check.CHECK_S", 0.5)

    async def scene() -> tuple[str, list]:
        async with FaultServer() as server:
            with pytest.raises(OutsideError, match="does not speak https") as caught:
                await asyncio.to_thread(check, f"https://127.0.0.1:{server.port}/v1", "openai-chat/m")
            return caught.value.remedy, server.records

    remedy, seen = asyncio.run(scene())
    assert remedy.startswith("try --base-url http://127.0.0.1:") and "sk-0123456789ab" not in str(seen)


RUNNING = Path(__file__).parents[2] / "docs" / "running.md"
# What listens at the addresses of the page.
SERVERS = {
    "8123": serving,
    "8124": lambda: serving(models=()),
    "8125": lambda: serving(models=("Qwen/Qwen2.5-VL-7B-Instruct",)),
    "8126": lambda: serving(key="sk-right-0123456789"),
}


def first_minute_samples() -> list[str]:
    """The commands of the page, each with what it prints."""
    section = RUNNING.read_text().partition("## The first minute")[2].partition("\n## ")[0]
    block = re.search(r"```text\n(.*?)```", section, re.DOTALL)[1]
    return [part.strip() for part in block.split("$ medthink ")[1:]]


@pytest.mark.parametrize("sample", first_minute_samples())
def test_the_page_on_running_shows_what_is_printed(tmp_path, sample):
    write_benchmark(tmp_path / "bench", cases=2)
    command, _, printed = sample.partition("\n")
    port = re.search(r"localhost:(\d+)", command)[1]
    with serving() as gone:
        pass
    with SERVERS.get(port, lambda: contextlib.nullcontext(gone))() as url:
        words = shlex.split(command.replace(f"http://localhost:{port}", url))
        env = {"MEDTHINK_SERVER_KEY": "sk-wrong-0123456789"}
        code, out, err = finish(medthink(*words, cwd=tmp_path, env=env))
    assert (code, out) == (3, "")
    real = url.rpartition(":")[2]
    told = err.replace(url, f"http://localhost:{port}").replace(f"'127.0.0.1', {real}", f"'127.0.0.1', {port}")
    assert told.strip() == printed
    assert not (tmp_path / "runs").exists()


def test_without_the_preflight_the_first_cases_that_fail_alike_stop_the_run(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=30)
    with serving() as url:
        words = ("run", bench, "--model", "server/other", "--base-url", f"{url}/v1", "--out", tmp_path / "run")
        code, _, err = finish(medthink(*words, "--no-preflight", "--concurrency", "2"))
    assert code == 3
    assert "the first 5 cases failed in the same way: The model does not exist" in err
    assert len((tmp_path / "run" / "predictions.jsonl").read_text().splitlines()) < 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_end_a_run_as_ctrl_c_does(tmp_path, start_server, number):
    bench = write_benchmark(tmp_path / "bench", cases=20)
    server = start_server("--hold-after", "2")
    words = ("run", bench, "--model", "server/m", "--base-url", f"{server.url}/v1", "--out", tmp_path / "run")
    process = medthink(*words, "--concurrency", "2")
    server.wait_for(4)
    wait_until(lambda: read_rows(tmp_path / "run/ledger.sqlite", "SELECT count(*) FROM predictions") == [(2,)])
    process.send_signal(number)
    code, _, err = finish(process)
    assert code == 130
    assert "run the same command again" in err and "Traceback" not in err
    progress = json.loads((tmp_path / "run" / "run.json").read_text())["progress"]
    made = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    assert 2 == len(made) == sum(progress["states"].values()) < progress["cases"] == 20
    assert not progress["is_complete"]
    assert progress["uncounted_replies"] == 2, "what was in flight may be billed"
