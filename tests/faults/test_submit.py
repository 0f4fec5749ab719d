"""`medthink submit` to a board that is really served: the answer by line, the same file once, and every refusal."""

import json
import os
import subprocess
import sys

import pytest
from test_serve_faults import CASES, Served, lines

from medthink.cli.command import run_command
from small_benchmark import write_benchmark


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("submit")
    board = Served(root, write_benchmark(root / "bench", cases=CASES), uploads_per_day=50)
    board.start("--scoring-workers", "1")
    yield board
    board.stop()


def submit(served, file, *more, token=None, port=None):
    words = ["submit", file, "--to", f"http://127.0.0.1:{port or served.port}", "--model-name", "m", *more]
    environment = os.environ | {"MEDTHINK_BOARD_TOKEN": served.token if token is None else token}
    command = [sys.executable, "-m", "medthink", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_a_file_is_scored_and_sent_again_is_the_same_submission(served, tmp_path):
    file = tmp_path / "whole.jsonl"
    file.write_bytes(lines())
    code, out, err = submit(served, file, "--organization", "Tarn", "--effort", "low")
    assert code == 0, err
    assert out.startswith("m by North: scored") and "accuracy" in out
    code, out, _ = submit(served, file, "--json")
    first = json.loads(out)
    assert code == 0 and first["model"] == "m" and first["page"].endswith(f"/submissions/{first['token']}")
    assert json.loads(submit(served, file, "--json")[1])["token"] == first["token"]


def test_the_servers_answer_is_printed_by_line(served, tmp_path):
    file = tmp_path / "wrong.jsonl"
    file.write_bytes(lines(letter="Z").replace(b'"title"', b'"titel"', 1))
    code, out, err = submit(served, file)
    assert code == 1 and "the server found" in err
    assert "line 1" in out or ":1" in out or out.startswith("1")


def test_every_refusal_has_its_code_and_what_to_do(served, tmp_path, capsys, monkeypatch):
    file = tmp_path / "f.jsonl"
    file.write_bytes(lines())
    code, _, err = submit(served, file, token="mt_nothing")
    assert code == 2 and "this token opens nothing (401)\n  → make another one" in err
    code, _, err = submit(served, file, port=9)
    assert code == 3 and "does not answer" in err
    monkeypatch.setenv("MEDTHINK_BOARD_TOKEN", "secret")
    for url, told in (("http://board.example.org", "unencrypted"), ("board", "is not an address")):
        assert run_command(["submit", str(file), "--to", url, "--model-name", "m"]) == 2
        assert told in capsys.readouterr().err
    assert run_command(["submit", str(tmp_path), "--to", "http://localhost:9", "--model-name", "m"]) == 2
    assert "submission pack" in capsys.readouterr().err
    monkeypatch.delenv("MEDTHINK_BOARD_TOKEN")
    assert run_command(["submit", str(file), "--to", "http://localhost:9", "--model-name", "m"]) == 2
    assert "--token-file" in capsys.readouterr().err
