"""`medthink serve` as processes: quotas under parallel uploads, `kill -9` of web and worker, hostile files."""

import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from medthink.accounts.account import NewAccount, add_account
from medthink.accounts.sessions import make_token
from medthink.board.submissions import find_submission, list_submissions, read_file
from medthink.core.digest import digest_bytes
from medthink.store.engine import Store, store_url
from small_benchmark import write_benchmark

CASES = 12
UPLOADS = 50
KILLS = int(os.environ.get("MEDTHINK_KILLS", "2"))


def lines(number: int = 0, letter: str = "A") -> bytes:
    rows = [{"title": f"Case number {case}", "prediction": letter, "n": number} for case in range(100, 100 + CASES)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


class Served:
    """A board that is served by processes of its own, at one port through every restart."""

    def __init__(self, root: Path, bench: Path, url: str = "", **settings: int) -> None:
        self.url = url or store_url(root / "board.sqlite")
        self.store = Store(self.url)
        account = add_account(self.store, NewAccount(name="ann", roles=("submitter",), team="North"), actor="test")
        self.token = make_token(self.store, account, "test", ["read", "submit"], days=1)
        (root / "serve.toml").write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self._words = ["serve", "--store", self.url, "--data", str(bench), "--settings", str(root / "serve.toml")]
        self._words += ["--port", str(self.port), "--no-browser"]
        self.log = root / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "medthink", *self._words, *more]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.wait_until(self._answers)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=120)
        self.store.close()

    def workers(self) -> list[int]:
        """The process numbers of the workers that run now."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = [int(pid) for task in children for pid in task.read_text().split()]
        return [pid for pid in pids if b"work" in _command_line(pid)]

    def send(self, data: bytes, timeout: float = 120) -> str | int:
        """The submission's token, or the status of a refusal; OSError where nobody answers."""
        status, body = self.ask("POST", "/api/v1/submissions?model=m", data, timeout)
        return json.loads(body)["token"] if status == 202 else status

    def ask(self, method: str, path: str, data: bytes | None = None, timeout: float = 120) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, data, {"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError from error
        finally:
            connection.close()

    def wait_until(self, holds, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def _answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.log.read_text()
        try:
            return self.ask("GET", "/api/v1/submissions", timeout=5)[0] == 200
        except OSError:
            return False


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("serve") / "bench", cases=CASES)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers by /proc")
def test_a_kill_of_web_or_worker_loses_nothing_that_was_acknowledged(tmp_path, bench):
    served = Served(tmp_path, bench, uploads_per_day=1000)
    served.start("--scoring-workers", "1")
    rng = random.Random(7)
    files = [lines(number) for number in range(UPLOADS)]
    acknowledged: dict[str, bytes] = {}
    stop = threading.Event()

    def upload(data: bytes) -> None:
        while not stop.is_set():
            try:
                answer = served.send(data)
            except OSError:
                time.sleep(0.05)  # nobody was there: it was not acknowledged, and is sent again
                continue
            assert isinstance(answer, str), answer
            acknowledged[answer] = data
            time.sleep(rng.random() * 0.3)
            return

    def destroy() -> None:
        for _ in range(KILLS):
            time.sleep(0.5 + rng.random())
            for pid in served.workers():
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.5 + rng.random())
            served.kill()
            served.start("--scoring-workers", "1")

    try:
        with ThreadPoolExecutor(6) as pool:
            killer = pool.submit(destroy)
            for done in [pool.submit(upload, data) for data in files]:
                done.result(timeout=200)
            killer.result(timeout=200)
        served.wait_until(lambda: all(one.status == "scored" for one in list_submissions(served.store)), 200)
        kept = list_submissions(served.store)
        assert {one.token for one in kept} >= acknowledged.keys()
        assert len(kept) == len({one.file_sha256 for one in kept}) == UPLOADS
        for token, data in acknowledged.items():
            found = find_submission(served.store, token)
            assert found.file_sha256 == digest_bytes(data) and read_file(served.store, found.file_sha256) == data
    finally:
        stop.set()
        served.stop()


def test_a_quota_holds_under_parallel_uploads_to_several_processes(tmp_path, bench, new_address):
    # On SQLite the same holds for threads: tests/unit/board/test_submissions.py.
    served = Served(tmp_path, bench, new_address, uploads_per_day=5)
    served.start("--web-workers", "2", "--scoring-workers", "1")
    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(served.send, [lines(number) for number in range(40)]))
    assert sum(isinstance(one, str) for one in answers) == 5, answers
    assert {one for one in answers if isinstance(one, int)} == {409}
    served.wait_until(lambda: all(one.status == "scored" for one in list_submissions(served.store)))
    assert len(list_submissions(served.store)) == 5
    served.stop()


def test_bodies_over_the_limit_are_refused_early_and_the_server_stays_small(tmp_path, bench):
    served = Served(tmp_path, bench, largest_upload_mb=2)
    served.start("--scoring-workers", "0")
    before = _memory(served.process.pid)
    announced = _pour(served, f"Content-Length: {200 << 20}", chunked=False)
    assert announced.status == 413 and announced.sent <= 10 << 20
    streamed = _pour(served, "Transfer-Encoding: chunked", chunked=True)
    assert streamed.status in (413, None) and streamed.sent <= (2 + 10) << 20
    assert _memory(served.process.pid) - before < 100 << 20
    assert isinstance(served.send(lines()), str)
    served.stop()


class Poured:
    """How much of a body was taken before the server had enough, and what it said."""

    def __init__(self, sent: int, status: int | None) -> None:
        self.sent = sent
        self.status = status


def _pour(served: Served, header: str, *, chunked: bool) -> Poured:
    block, sent = b"x" * (1 << 16), 0
    head = f"POST /api/v1/submissions?model=m HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    head += f"Authorization: Bearer {served.token}\r\n{header}\r\n\r\n"
    piece = f"{len(block):x}\r\n".encode() + block + b"\r\n" if chunked else block
    with socket.create_connection(("127.0.0.1", served.port), timeout=120) as connection:
        connection.sendall(head.encode())
        try:
            while sent < 200 << 20:
                connection.sendall(piece)
                sent += len(block)
        except OSError:
            pass  # the server has closed the connection
        try:
            said = connection.recv(100)
        except OSError:
            said = b""
    found = re.match(rb"HTTP/1.1 (\d+)", said)
    return Poured(sent, int(found[1]) if found else None)


def _memory(pid: int) -> int:
    """The largest resident size that a process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


BOMBS = {
    "deep nesting": b'{"title": "Case number 100", "prediction": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "a long number": b'{"title": "Case number 100", "prediction": "A", "n": ' + b"9" * 100_000 + b"}\n",
    "NaN": b'{"title": "Case number 100", "prediction": NaN}\n',
    "infinite": b'{"title": "Case number 100", "prediction": "A", "n": 1e999}\n',
    "the same key twice": b'{"title": "Case number 100", "prediction": "A", "prediction": "B"}\n',
    "half a character": b'{"title": "Case number 100", "prediction": "\\ud800"}\n',
    "a byte-order mark": b"\xef\xbb\xbf" + lines(),
    "NUL": b'{"title": "Case number 100", "prediction": "\x00"}\n',
    "an endless line": b'{"title": "' + b"x" * (30 << 20) + b'"}\n',
    "a million lines": b"1\n" * 1_000_000,
    "a million objects": b'{"title":"Case number 100","prediction":"F"}\n' * 500_000,
    "gzip": b"\x1f\x8b" + b"\x00" * 1000,
    "nothing": b"",
    "a zip": b"PK\x03\x04" + b"\x00" * 1000,
}

CHECK = """
import resource, sys
from pathlib import Path
from medthink.board.checking import LoadedBenchmark, check_file

held = LoadedBenchmark.open(Path(sys.argv[1]))
for name in sys.argv[2:]:
    found = check_file(Path(name), held).submission.problems
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(Path(name).name, grown, len(found), found[0].line if found else "none", sep="\\t")
"""


def test_hostile_files_are_refused_with_their_line_and_little_memory(tmp_path, bench):
    (tmp_path / "0 plain").write_bytes(lines())
    for name, data in BOMBS.items():
        (tmp_path / name).write_bytes(data)
    paths = [tmp_path / "0 plain", *(tmp_path / name for name in BOMBS)]
    command = [sys.executable, "-c", CHECK, str(bench), *map(str, paths)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split("\t") for line in told]
    assert rows[0][2:] == ["0", "none"]
    assert [name for name, _, count, _ in rows[1:] if count == "0"] == []
    # A line number where one line is at fault; the byte-order mark, gzip and the like concern the whole file.
    lines_told = {name: line for name, _, _, line in rows[1:]}
    assert all(lines_told[name] == "1" for name in list(BOMBS)[:6])
    assert int(rows[-1][1]) - int(rows[0][1]) < 100 * 1024
