"""What comes out of `medthink` is readable wherever it goes, and it leaves with a documented code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medthink.cli.command import run_command
from processes import finish, medthink


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    place = tmp_path_factory.mktemp("door") / "bench"
    assert run_command(["data", "synth", "-o", str(place), "--count", "12", "--seed", "1"]) == 0
    return place


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["doctor"], ["doctor", "--json"], ["run", "--help"]])
def test_a_reader_that_goes_away_is_no_error_and_no_no(words):
    end_to_read, end_to_write = os.pipe()
    os.close(end_to_read)
    with os.fdopen(end_to_write, "wb") as gone:
        command = [sys.executable, "-m", "medthink", *words]
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [["--help"], ["doctor"], ["doctor", "--json"]])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_the_output_is_one_message(words):
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "medthink", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("medthink: No space left on device\n  → ")
    assert "Traceback" not in done.stderr


def test_a_terminal_without_unicode_gets_question_marks_and_json_stays_whole(bench):
    narrow = {"PYTHONIOENCODING": "ascii"}
    for words in (["--help"], ["data", "stats", bench], ["doctor"]):
        code, out, err = finish(medthink(*words, env=narrow))
        assert (code, err) == (0, "")
        assert "?" in out
    run = bench.parent / "run"
    assert run_command(["run", str(bench), "--model", "baseline/random", "--out", str(run)]) == 0
    whole = [finish(medthink("status", run, "--json", env=env))[1] for env in (narrow, {})]
    assert whole[0] == whole[1]
    assert "·" in json.loads(whole[0])["condition_label"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "bench", "--model", "baseline/random", "--out", "run", "--temperature", "nan"],
            "nan is not a finite number",
        ),
        (
            ["run", "bench", "--model", "baseline/random", "--out", "run", "--max-usd", "inf"],
            "inf is not a finite number",
        ),
        (["judge", "run", "--judge", "baseline/rules", "--max-usd", "nan"], "nan is not a finite number"),
        (["judge", "run", "--judge", "baseline/rules", "--evidence", ""], "cannot be shown nothing"),
        (
            ["reading", "lists", "run", "--readers", "a,b", "--out", "lists", "--repeat-share", "nan"],
            "nan is not a finite number",
        ),
    ],
)
def test_a_value_that_bounds_nothing_is_refused(words, message, capsys):
    assert run_command(words) == 2
    assert message in capsys.readouterr().err


def test_the_demo_leaves_with_the_code_of_the_command_that_ended_it(capsys):
    assert run_command(["demo", "--out", "/proc/nowhere"]) == 2
    assert capsys.readouterr().err.count("medthink: ") == 1


def test_shards_are_merged_and_told_as_json(bench, tmp_path, capsys):
    for part in ("1/2", "2/2"):
        words = ["run", str(bench), "--model", "baseline/random", "--shard", part, "--out", str(tmp_path / part[0])]
        assert run_command(words) == 0
    capsys.readouterr()
    assert (
        run_command(["merge", "-o", str(tmp_path / "whole"), str(tmp_path / "1"), str(tmp_path / "2"), "--json"]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["run"], told["progress"]["states"]) == (str(tmp_path / "whole"), {"ok": 3})


def test_ctrl_c_while_the_command_line_is_still_being_imported_is_one_word():
    start = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['medthink', 'run']\n"
        "from medthink.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "medthink: interrupted\n")
