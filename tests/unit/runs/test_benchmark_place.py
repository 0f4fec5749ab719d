"""A run finds its benchmark wherever both are looked at from, and says so where it cannot."""

import json
import re
import shutil

import pytest

from medthink.cli.command import run_command
from medthink.core.errors import UsageError
from medthink.runs.manifest import read_manifest
from medthink.runs.run import Run
from medthink.runs.trace import Trace
from small_benchmark import write_benchmark


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with a benchmark and a run that named it by a relative path."""
    root = tmp_path / "there"
    root.mkdir()
    write_benchmark(root / "bench", cases=12)
    monkeypatch.chdir(root)
    assert run_command(["run", "bench", "--model", "baseline/random", "--out", "runs/q"]) == 0
    return root


def _spoil(bench):
    file = bench / "test.jsonl"
    file.write_text(file.read_text().replace("with pain", "without pain"))


def test_a_run_is_scored_from_any_folder(there, monkeypatch, capsys):
    monkeypatch.chdir(there / "runs")
    assert run_command(["score", "q"]) == 0
    assert run_command(["show", "q", "--wrong", "--json"]) == 0
    said = capsys.readouterr().out
    wrong = json.loads(said[said.index("{") :])["cases"]
    assert len(wrong) == sum(row.is_right is False for row in Trace(there / "runs/q").rows()) > 0


def test_run_json_names_its_benchmark_from_the_run_and_absolutely(there):
    manifest = read_manifest(there / "runs/q")
    assert (manifest.benchmark, manifest.benchmark_absolute) == ("../../bench", str(there / "bench"))
    assert manifest.benchmark_name == "bench"


def test_run_and_benchmark_may_move_together(there, tmp_path):
    moved = shutil.move(there, tmp_path / "moved")
    assert len(Run(moved / "runs/q").cases()) == 12


def test_a_run_may_move_alone(there, tmp_path):
    moved = shutil.move(there / "runs/q", tmp_path / "elsewhere")
    assert len(Run(moved).cases()) == 12


def test_another_benchmark_at_the_first_path_is_passed_over(there, tmp_path):
    run = shutil.copytree(there / "runs/q", tmp_path / "copy/runs/q")
    _spoil(shutil.copytree(there / "bench", tmp_path / "copy/bench"))
    assert Run(run).benchmark_path() == there / "bench"
    assert Run(run).split().path == Run(run).split_and_changes()[0].path == there / "bench"
    shutil.rmtree(there)
    with pytest.raises(UsageError, match=r"copy/bench is not the benchmark that .* was made on"):
        Run(run).cases()


@pytest.mark.parametrize("words", [["score", "runs/q"], ["show", "runs/q", "--wrong"]])
def test_the_cases_that_changed_are_named_as_a_run_continued_names_them(there, capsys, words):
    file = there / "bench/test.jsonl"
    file.write_text(file.read_text().replace("with pain", "without pain", 1))
    assert run_command(words) == 2
    told = capsys.readouterr().err
    assert "bench has changed since" in told and "was made on it: case " in told and "restore its texts" in told
    assert run_command(["run", "bench", "--model", "baseline/random", "--out", "runs/q"]) != 0
    named = re.search(r"was made on it: (case \d+)", told)
    assert named and f"has changed since: {named[1]}" in capsys.readouterr().err


def test_a_merged_run_names_the_benchmark_from_its_own_folder(there):
    for number in (1, 2):
        words = ["--model", "baseline/random", "--shard", f"{number}/2", "--out", f"parts/deep/{number}"]
        assert run_command(["run", "bench", *words]) == 0
    assert run_command(["merge", "parts/deep/1", "parts/deep/2", "-o", "whole"]) == 0
    assert read_manifest(there / "whole").benchmark == "../bench"


def test_unknown_right_and_wrong_is_said_with_exit_code_2(there, capsys):
    shutil.move(there / "bench", there / "away")
    assert run_command(["show", "runs/q", "--wrong"]) == 2
    said = capsys.readouterr().err
    assert "which answers are wrong is unknown" in said and "--data" in said
    assert run_command(["show", "runs/q", "--wrong", "--data", "away"]) == 0
    assert run_command(["view", "runs", "--no-browser", "--data", "nowhere"]) == 2
    assert "right and wrong are unknown" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["exam", "runs/q", "--judge", "baseline/rules", "--out", "exam", "--count", "1"],
        ["reading", "training", "runs/q", "--readers", "anna", "--out", "training", "--count", "2"],
        ["submission", "pack", "runs/q", "-o", "s.jsonl"],
    ],
    ids=lambda words: words[0],
)
def test_data_is_taken_wherever_a_message_offers_it(there, words, capsys):
    (there / "bench").rename(there / "away")
    assert run_command(words) == 2
    assert "--data" in capsys.readouterr().err
    run_command([*words, "--data", "away"])
    assert "no longer at" not in capsys.readouterr().err


def test_board_add_reads_the_run_with_its_data(there):
    (there / "bench").rename(there / "away")
    words = ["board", "add", "runs/q", "--data", "away", "--team", "T", "--store", "board.sqlite"]
    assert run_command(words) == 0


def test_a_control_that_moved_is_found_among_several_data(there, tmp_path, capsys):
    other = write_benchmark(tmp_path / "other", cases=3)
    for bench, name in (("bench", "recall"), (str(other), "control")):
        words = ["--task", "recall", "--model", "baseline/random", "--out", f"runs/{name}"]
        assert run_command(["run", bench, *words]) in (0, 3)
    (there / "bench").rename(there / "away")
    other.rename(tmp_path / "gone")
    words = ["audit", "contamination", "runs/recall", "--control", "runs/control", "--data", "away"]
    assert run_command(words) == 2
    assert "runs/control" in capsys.readouterr().err
    run_command([*words, "--data", str(tmp_path / "gone")])
    assert "with --data" not in capsys.readouterr().err


def test_a_link_to_the_benchmark_keeps_its_name(there):
    (there / "latest").symlink_to(there / "bench")
    assert run_command(["run", "latest", "--model", "baseline/random", "--out", "runs/linked"]) == 0
    assert read_manifest(there / "runs/linked").benchmark == "../../latest"
