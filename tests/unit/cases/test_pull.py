"""`medthink data pull` against a server on loopback that speaks the hub's wire."""

import hashlib
import io
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from medthink.cases.benchmark import Benchmark
from medthink.cases.check import check_benchmark
from medthink.cases.files import pull
from medthink.cases.files.pull import RECORD, REPOSITORY, HubFile, Snapshot
from medthink.cli.command import run_command
from medthink.core.errors import MedThinkError, OutsideError
from medthink.core.jsonio import encode_json, read_json

COMMIT = "5555b80e" + "0" * 32
MEGABYTE = 1024 * 1024


class Hub(ThreadingHTTPServer):
    """The files of one dataset repository, and the ways in which serving them may go wrong."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.files = files
        self.log: list[tuple[str, str]] = []
        self.cut_after: dict[str, int] = {}
        self.stall_after: dict[str, int] = {}
        self.stalled = threading.Event()
        self.damaged: set[str] = set()
        self.broken: dict[str, int] = {}
        self.pages: dict[str, bytes] = {}
        self.takes_ranges = True

    def handle_error(self, *_: object) -> None:
        """A client that went away is what some tests are about; told late, it would end up in another test's output."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fetched(self) -> list[tuple[str, str]]:
        """The files asked for since the last call, with the range asked for."""
        prefix = f"/datasets/{REPOSITORY}/resolve/{COMMIT}/"
        found = [(path.removeprefix(prefix), span) for path, span in self.log if path.startswith(prefix)]
        self.log.clear()
        return sorted(found)

    def tree(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = [{"type": "directory", "path": "images", "oid": "0" * 40, "size": 0}]
        for path, data in self.files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            entry = {"type": "file", "path": path, "size": len(data), "oid": blob}
            if path.endswith((".zip", ".parquet")):
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        return entries


class _Answer(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.log.append((path, self.headers.get("Range", "")))
        api = f"/api/datasets/{REPOSITORY}"
        if path in self.server.broken:
            self._send(self.server.broken[path], b'{"error": "down"}')
        elif path in self.server.pages:
            self._send(200, self.server.pages[path])
        elif path in (f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
            self._send(200, encode_json({"id": REPOSITORY, "sha": COMMIT, "siblings": [], "private": False}))
        elif path.startswith(f"{api}/revision/"):
            self._send(404, b'{"error": "Invalid rev id"}', {"X-Error-Code": "RevisionNotFound"})
        elif path == f"{api}/tree/{COMMIT}":
            self._send(200, encode_json(self.server.tree()))
        else:
            self._send_file(path.removeprefix(f"/datasets/{REPOSITORY}/resolve/{COMMIT}/"))

    def _send_file(self, name: str) -> None:
        if name not in self.server.files:
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            return
        data = self.server.files[name]
        if name in self.server.damaged:
            data = data[:-1] + bytes([data[-1] ^ 1])
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(data).hexdigest()}"', "Accept-Ranges": "bytes"}
        span = self.headers.get("Range", "")
        if span and self.server.takes_ranges:
            start = int(span.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self._send(206, data[start:], headers, name)
        else:
            self._send(200, data, headers, name)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None, name: str = "") -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = self.server.cut_after.pop(name, None)
        stall = self.server.stall_after.pop(name, None)
        self.wfile.write(body[: cut if cut is not None else stall])
        self.wfile.flush()
        if cut is not None:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        if stall is not None:
            self.server.stalled.set()
            time.sleep(60)


@pytest.fixture
def release(tmp_path: Path, tiny_rows: Any, folder_maker: Callable[..., Path]) -> dict[str, bytes]:
    """The files of a small release."""
    folder = folder_maker(tmp_path / "release", tiny_rows, zipped=True)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return files | {".gitattributes": b"", "README.md": b"card", "images/case00007/7_1.jpg": b"loose"}


@pytest.fixture
def hub(release: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub(release)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # Another test may have imported the library with other settings, and it reads them only once.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def large(hub: Hub) -> Hub:
    """The same with a zip of some size, since the hub's library hands on its bytes ten megabytes at a time."""
    zipped = io.BytesIO(hub.files["images.zip"])
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr("images/padding.bin", random.Random(1).randbytes(25 * MEGABYTE))
    hub.files["images.zip"] = zipped.getvalue()
    return hub


def test_it_fetches_checks_and_records_a_release(
    hub: Hub, tmp_path: Path, release: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run_command(["data", "pull", "-o", str(out)]) == 0
    expected = ["README.md", "images.zip", "test.jsonl", "train.jsonl"]
    assert hub.fetched() == [(name, "") for name in expected]
    assert sorted(path.name for path in out.iterdir()) == [RECORD, *expected]
    assert all((out / name).read_bytes() == release[name] for name in expected)
    record = read_json(out / RECORD)
    assert record.keys() == {"repository", "commit", "licence", "pulled_at"}
    assert (record["repository"], record["commit"]) == (REPOSITORY, COMMIT)
    told = capsys.readouterr().out
    assert "CC BY-NC-SA 4.0" in told
    assert f"commit {COMMIT}, 5 cases" in told
    report = check_benchmark(Benchmark.open(out))
    assert report.warnings and f"checked: {len(report.errors)} errors, {len(report.warnings)} warnings" in told
    assert Benchmark.open(out).case(300).question.images[0].read()


def test_a_second_pull_fetches_nothing_and_mends_what_was_damaged(hub: Hub, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run_command(["data", "pull", "-o", str(out)]) == 0
    hub.fetched()
    assert run_command(["data", "pull", "-o", str(out), "--revision", COMMIT]) == 0
    assert hub.fetched() == []
    size = (out / "test.jsonl").stat().st_size
    (out / "test.jsonl").write_bytes(b" " * size)
    (out / "README.md").unlink()
    assert run_command(["data", "pull", "-o", str(out)]) == 0
    assert hub.fetched() == [("README.md", ""), ("test.jsonl", "")]
    assert (out / "test.jsonl").read_bytes() == hub.files["test.jsonl"]


def test_a_cut_connection_is_taken_up_where_it_broke(large: Hub, tmp_path: Path) -> None:
    large.cut_after["images.zip"] = 12 * MEGABYTE
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 0
    first, second = (span for name, span in large.fetched() if name == "images.zip")
    assert first == ""
    assert int(second.removeprefix("bytes=").rstrip("-")) >= 10 * MEGABYTE
    assert (tmp_path / "out/images.zip").read_bytes() == large.files["images.zip"]


def test_a_killed_pull_is_taken_up_by_the_next(large: Hub, tmp_path: Path) -> None:
    out = tmp_path / "out"
    large.stall_after["images.zip"] = 22 * MEGABYTE
    command = [sys.executable, "-c", "from medthink.cli import main; main()", "data", "pull", "-o", str(out)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_HUB")}
    environment |= {"HF_ENDPOINT": large.address, "HF_HOME": str(tmp_path / "home")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        assert large.stalled.wait(60)
        part = out / ".medthink-parts" / f"{hashlib.sha256(large.files['images.zip']).hexdigest()}.part"
        while not part.exists() or part.stat().st_size < 20 * MEGABYTE:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert not (out / "images.zip").exists()
    # Nothing but the listing and the files was asked for: no usage reports.
    api = f"/api/datasets/{REPOSITORY}"
    asked = {path for path, _ in large.log if "/resolve/" not in path}
    assert asked == {f"{api}/revision/main", f"{api}/tree/{COMMIT}"}
    large.fetched()
    assert run_command(["data", "pull", "-o", str(out)]) == 0
    spans = dict(large.fetched())
    assert spans["images.zip"] == f"bytes={20 * MEGABYTE}-"
    assert (out / "images.zip").read_bytes() == large.files["images.zip"]
    assert not part.parent.exists()


def test_a_server_without_ranges_is_asked_for_everything_again(large: Hub, tmp_path: Path) -> None:
    large.takes_ranges = False
    large.cut_after["images.zip"] = 12 * MEGABYTE
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/images.zip").read_bytes() == large.files["images.zip"]


@pytest.mark.parametrize("takes_ranges", [True, False])
def test_the_progress_adds_up_to_the_size(hub: Hub, tmp_path: Path, takes_ranges: bool) -> None:
    hub.takes_ranges = takes_ranges
    snapshot, gained = pull.find_snapshot(), list[int]()
    data = hub.files["images.zip"]
    part = tmp_path / f"out/.medthink-parts/{hashlib.sha256(data).hexdigest()}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(data[:100])
    for _ in ("continued", "there already"):
        gained.clear()
        pull.pull_snapshot(snapshot, tmp_path / "out", progress=gained.append)
        assert sum(gained) == snapshot.size


def test_a_part_of_another_size_is_not_trusted(hub: Hub, tmp_path: Path) -> None:
    digest = hashlib.sha256(hub.files["images.zip"]).hexdigest()
    part = tmp_path / f"out/.medthink-parts/{digest}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * (len(hub.files["images.zip"]) + 1))
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/images.zip").read_bytes() == hub.files["images.zip"]


def test_loose_images_are_fetched_where_there_is_no_zip(hub: Hub, tmp_path: Path) -> None:
    del hub.files["images.zip"]
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/images/case00007/7_1.jpg").read_bytes() == b"loose"


@pytest.mark.parametrize("name", ["images.zip", "train.jsonl"])
def test_a_damaged_file_does_not_get_its_name(
    hub: Hub, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.damaged.add(name)
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 3
    assert f"{name} was damaged during download" in capsys.readouterr().err
    assert not (tmp_path / "out" / name).exists()
    assert not (tmp_path / "out" / RECORD).exists()
    hub.damaged.clear()
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/api/datasets/{REPOSITORY}/revision/main", 500),
        # The hub's library waits and tries again after 500 here, which is right and slow.
        (f"/api/datasets/{REPOSITORY}/tree/{COMMIT}", 403),
        (f"/datasets/{REPOSITORY}/resolve/{COMMIT}/test.jsonl", 503),
    ],
)
def test_a_hub_that_fails_is_exit_3(
    hub: Hub, tmp_path: Path, path: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.broken[path] = status
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 3
    error = capsys.readouterr().err
    assert "the hub failed" in error
    assert "continues where it stopped" in error
    assert "Traceback" not in error


def test_a_failed_file_ends_the_long_download_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def fetch(file: HubFile, _: Snapshot, __: Path, meter: Any) -> None:
        if file.path == "test.jsonl":
            raise OutsideError("no such file")
        for _ in range(1000):
            time.sleep(0.01)
            try:
                meter.count(1)
            except MedThinkError:
                ended.append(file.path)
                raise

    monkeypatch.setattr(pull, "_fetch", fetch)
    files = tuple(HubFile(path, 1, "", "content") for path in ("images.zip", "test.jsonl"))
    with pytest.raises(OutsideError, match="no such file"):
        pull.pull_snapshot(Snapshot(REPOSITORY, COMMIT, files), tmp_path / "out")
    assert ended == ["images.zip"]


def test_no_network_is_exit_3(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 3
    assert "the hub failed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "path", [f"/api/datasets/{REPOSITORY}/revision/main", f"/api/datasets/{REPOSITORY}/tree/{COMMIT}"]
)
@pytest.mark.parametrize("page", [b"<html>Log in to this network</html>", b"[1]"])
def test_a_page_to_log_in_is_not_taken_for_the_hub(
    hub: Hub, tmp_path: Path, path: str, page: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.pages[path] = page
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 3
    assert "the server that answered is not the hub" in capsys.readouterr().err


def test_an_unknown_revision_is_exit_2(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["data", "pull", "-o", str(tmp_path / "out"), "--revision", "nowhere"]) == 2
    assert "no revision 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["../escape.txt", "/escape.txt", "a/../../escape.txt", "a\\b"])
def test_a_hub_cannot_write_outside_the_folder(hub: Hub, tmp_path: Path, path: str) -> None:
    hub.files[path] = b"x"
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 3
    assert not (tmp_path / "out").exists()


def test_a_split_of_another_revision_is_not_mixed_with_this_one(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run_command(["data", "pull", "-o", str(out)]) == 0
    hub.files["train.parquet"] = hub.files.pop("train.jsonl")
    hub.fetched()
    assert run_command(["data", "pull", "-o", str(out)]) == 2
    assert "train.jsonl: not a file of this revision" in capsys.readouterr().err
    assert hub.fetched() == []


def test_a_full_disk_is_not_blamed_on_the_network(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    hub.files = {"test.jsonl": hub.files["test.jsonl"]}
    monkeypatch.setattr(pull._MeteredFile, "write", full)
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / 'out/test.jsonl'}: cannot be written: No space left on device" in error
    assert "continues where it stopped" in error and "network" not in error


def test_a_file_where_the_folder_should_be_is_exit_2(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    assert run_command(["data", "pull", "-o", str(tmp_path / "out")]) == 2
    assert (tmp_path / "out").read_text() == "mine"
