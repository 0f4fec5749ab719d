"""The command line in a shell: pipes that close, closed outputs, home folders, plug-ins that end the program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medthink.cli.command import _expand_home
from medthink.core.files import write_atomic
from small_benchmark import write_benchmark

COMMAND = f"{sys.executable} -m medthink"


def shell(line: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(words, cwd=folder, env=os.environ | more, capture_output=True, text=True, check=False)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A benchmark with so many errors that its check outlasts a pipe."""
    root = write_benchmark(tmp_path / "bad", cases=400, images=1)
    lines = (root / "test.jsonl").read_text().splitlines()
    rows = [json.loads(line) | {"correct_answer_text": "Other"} for line in lines]
    (root / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def test_a_command_keeps_its_exit_code_when_its_reader_goes(bad: Path, tmp_path: Path) -> None:
    assert shell(f"{COMMAND} data check {bad} --json", tmp_path).returncode == 1
    for reader in ("head -c 10", "true"):
        done = shell(f"{COMMAND} data check {bad} --json | {reader}", tmp_path)
        assert done.returncode == 1 and "errors in" in done.stderr and "pipe" not in done.stderr.lower()
    good = write_benchmark(tmp_path / "good", cases=2)
    assert shell(f"{COMMAND} data show {good} 100 | true", tmp_path).returncode == 0


@pytest.mark.parametrize("words", ["--help", "--version", "doctor"])
def test_a_closed_output_is_an_error_in_words(tmp_path: Path, words: str) -> None:
    done = shell(f"{COMMAND} {words} >&-", tmp_path)
    assert done.returncode == 2 and "standard output is closed" in done.stderr and "Traceback" not in done.stderr
    assert shell(f"{COMMAND} {words} >&- 2>&-", tmp_path).returncode == 2


def test_an_env_file_that_is_not_utf_8_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("# für alle\nOPENAI_API_KEY=x\n".encode("cp1252"))
    done = shell(f"{COMMAND} doctor", tmp_path)
    assert done.returncode == 2 and ".env: not UTF-8 at byte 3\n  → save the file as UTF-8" in done.stderr


@pytest.mark.parametrize("flag", ["--out=~/lists/run", "--out ~/lists/run"])
def test_the_home_folder_is_meant_wherever_a_value_begins_with_it(tmp_path: Path, flag: str) -> None:
    bench = write_benchmark(tmp_path / "bench", cases=1)
    home = tmp_path / "home"
    home.mkdir()
    done = shell(f"{COMMAND} run {bench} --model baseline/random {flag}", tmp_path, HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert (home / "lists/run/run.json").is_file() and not (tmp_path / "~").exists()


@pytest.mark.parametrize(
    ("word", "meant"),
    [("--out=~/x", "--out=/h/x"), ("-o~/x", "-o/h/x"), ("--out=x~", "--out=x~"), ("~/x", "~/x"), ("--", "--")],
)
def test_only_a_value_in_the_same_word_as_its_flag_needs_it(
    word: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/h")
    assert _expand_home(word) == meant


LEAVE = "import sys\nsys.exit('a licence is needed')\n"
MODEL = """class Model:
    async def generate(self, request):
        import sys
        sys.exit('a licence is needed')


def open_model(name):
    return Model()
"""


@pytest.mark.parametrize("code", [LEAVE, MODEL], ids=["when it is imported", "when it answers"])
def test_a_plug_in_that_leaves_ends_with_its_message(tmp_path: Path, code: str) -> None:
    bench = write_benchmark(tmp_path / "bench", cases=1)
    (tmp_path / "leaver.py").write_text(code)
    folder = tmp_path / "leaver-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: leaver\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[medthink.models]\nleaver = leaver:open_model\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    done = shell(f"{COMMAND} run {bench} --model leaver/x --out run", tmp_path, PYTHONPATH=path)
    assert done.returncode == 3 and "a licence is needed" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_written_again_keeps_its_permissions(tmp_path: Path) -> None:
    for mode in (0o600, 0o664):
        path = tmp_path / f"{mode}.csv"
        path.write_text("old")
        path.chmod(mode)
        write_atomic(path, [b"new"])
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", mode)
