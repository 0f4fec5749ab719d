"""Bad files through the command line: one clear message, exit code 2, no traceback, nothing half-written."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medthink.cli.command import run_command
from medthink.core.jsonio import encode_json

ROW: dict[str, Any] = {
    "title": "Case number 1",
    "CLINICAL_HISTORY": "A history.",
    "IMAGING_FINDINGS": "Findings.",
    "discussion": "Discussion.",
    "options": dict(zip("ABCDE", ("one", "two", "three", "four", "five"), strict=True)),
    "correct_answer": "A",
    "correct_answer_text": "one",
    "ICD Chapter": "Chapter II - Neoplasms",
    "ICD Block": "C00-C14 - Lip",
    "ICD Category": "C00 - Lip",
    "is_longitudinal": False,
    "timepoint_count": 1,
    "interval_text": "",
    "image_count": 1,
    "image_01_id": "a",
    "image_01_path": "images/case00001/a.jpg",
    "image_01_caption": "Caption.",
    "image_01_modality": "CT",
    "image_01_sub_modality": "Other_CT",
}
LINE = encode_json(ROW)


def jsonl(data: bytes) -> Callable[[Path], Path]:
    def write(root: Path) -> Path:
        (root / "test.jsonl").write_bytes(data)
        return root / "test.jsonl"

    return write


def parquet(**changes: Any) -> Callable[[Path], Path]:
    def write(root: Path) -> Path:
        columns = {name: [value] for name, value in (ROW | changes).items() if value is not ...}
        pq.write_table(pa.table(columns), root / "test.parquet")
        return root / "test.parquet"

    return write


def cut_parquet(root: Path) -> Path:
    path = parquet()(root)
    path.write_bytes(path.read_bytes()[:-20])
    return path


def folder_for_file(root: Path) -> Path:
    (root / "test.jsonl").mkdir()
    return root


def pipe(root: Path) -> Path:
    os.mkfifo(root / "test.jsonl")
    return root


def link_to_nothing(root: Path) -> Path:
    (root / "test.jsonl").symlink_to("gone.jsonl")
    return root


def gigabyte_line(root: Path) -> Path:
    with (root / "test.jsonl").open("wb") as stream:
        stream.write(b'{"title": "')
        stream.truncate(1024**3)
    return root


def zip_bomb(root: Path) -> Path:
    (root / "test.jsonl").write_bytes(LINE)
    with zipfile.ZipFile(root / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images/case00001/a.jpg", bytes(30 * 1024 * 1024))
    return root


def cut_zip(root: Path) -> Path:
    zip_bomb(root)
    (root / "images.zip").write_bytes((root / "images.zip").read_bytes()[:500])
    return root


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"


def pointer_for_parquet(root: Path) -> Path:
    (root / "test.parquet").write_bytes(POINTER)
    return root


def page_for_parquet(root: Path) -> Path:
    (root / "test.parquet").write_bytes(b"<!DOCTYPE html><html><body>Log in</body></html>")
    return root


def pointer_for_zip(root: Path) -> Path:
    (root / "test.jsonl").write_bytes(LINE)
    (root / "images.zip").write_bytes(POINTER)
    return root


BAD = {
    "cut off line": (jsonl(LINE + b"\n" + LINE[:50]), "test.jsonl:2: not JSON", "truncated"),
    "wrong encoding": (jsonl(LINE.replace(b"A history", b"\xe4")), "test.jsonl:1: not UTF-8", "save the file as UTF-8"),
    "byte-order mark": (jsonl(b"\xef\xbb\xbf" + LINE), "byte-order mark", "plain UTF-8"),
    "CRLF": (jsonl(LINE + b"\r\n"), "CRLF", "LF"),
    "empty": (jsonl(b""), "the file is empty", "one JSON object per line"),
    "key twice": (jsonl(LINE[:-1] + b',"title":"Case number 2"}'), "test.jsonl:1: title: the same key", "keep one"),
    "nesting bomb": (jsonl(b"[" * 900 + b"]" * 900), "nested more than", "right file"),
    "wrong type": (jsonl(LINE.replace(b'"timepoint_count":1', b'"timepoint_count":"1"')), "timepoint_count", "correct"),
    "folder for file": (folder_for_file, "not a file", "inside it"),
    "pipe": (pipe, "not a regular file", "copy its content"),
    "link to nothing": (link_to_nothing, "test.jsonl: no such file", "check the path"),
    "long number": (jsonl(LINE[:-1] + b',"x":%d}' % 2**64), "test.jsonl:1: x: a whole number", "write it as a string"),
    "gigabyte line": (gigabyte_line, "longer than", "JSON Lines"),
    "missing columns": (parquet(title=..., options=...), "columns are missing: title, options", "split of"),
    "impossible column": (parquet(blob=b"\0"), "blob: the column holds binary", "drop the column"),
    "cut parquet": (cut_parquet, "cannot be read as parquet", "download the file again"),
    "pointer for parquet": (pointer_for_parquet, "test.parquet: the file is a Git LFS pointer", "git lfs pull"),
    "page for parquet": (page_for_parquet, "test.parquet: the file is a web page", "download the data itself"),
    "pointer for zip": (pointer_for_zip, "images.zip: the file is a Git LFS pointer", "git lfs pull"),
    "zip bomb": (zip_bomb, "100 times", "data check"),
    "cut zip": (cut_zip, "cannot be read as a zip", "truncated"),
    "nothing there": (lambda root: root / "none.jsonl", "no such file", "check the path"),
    "no split": (lambda root: root, "this folder contains no split", "train.jsonl"),
}

# Once is enough: a gigabyte takes its time.
SLOW = ("gigabyte line", "parquet")


@pytest.mark.parametrize(
    ("case", "form"), [(case, form) for case in BAD for form in ("jsonl", "parquet") if (case, form) != SLOW]
)
def test_a_bad_file_is_one_message_and_leaves_nothing(
    case: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write, told, remedy = BAD[case]
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in")
    assert run_command(["data", "export", str(path), "-o", str(tmp_path / "out"), "--format", form]) == 2
    captured = capsys.readouterr()
    message = captured.err.strip()
    assert message.startswith("medthink: ")
    assert told in message
    assert remedy in message.split("→")[1]
    assert message.count("\n") == 1
    assert len(message) < 600
    assert captured.out == ""
    assert [left.name for left in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("command", ["check", "stats"])
@pytest.mark.parametrize(
    "case", ["empty", "byte-order mark", "CRLF", "folder for file", "cut parquet", "nothing there"]
)
def test_the_other_commands_say_it_too(
    command: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write, told, _ = BAD[case]
    assert run_command(["data", command, str(write(tmp_path))]) == 2
    assert told in capsys.readouterr().err


def test_the_installed_command_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_bytes(LINE[:100])
    command = [sys.executable, "-c", "from medthink.cli import main; main()", "data", "export"]
    done = subprocess.run(
        [*command, str(tmp_path), "-o", str(tmp_path / "out"), "--format", "jsonl"],
        check=False, capture_output=True, text=True, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("medthink: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_extra_columns_are_no_error(tmp_path: Path) -> None:
    path = parquet(note="kept", score=0.5)(tmp_path)
    assert run_command(["data", "export", str(path), "-o", str(tmp_path / "out"), "--format", "jsonl"]) == 0
    assert b'"note":"kept","score":0.5' in (tmp_path / "out/test.jsonl").read_bytes()
