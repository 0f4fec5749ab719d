"""Another package adds a model, a metric and a task by entry points, and the command line takes them as its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from made_runs import make_run
from small_benchmark import write_benchmark

PLUGIN = Path(__file__).parents[1] / "support/tiny_plugin"


def medthink_with(plugin: Path, *words: object) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(plugin)}
    command = [sys.executable, "-m", "medthink", *map(str, words)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "bench", cases=5)


def test_an_added_model_answers_an_added_task(bench: Path, tmp_path: Path) -> None:
    words = ["run", bench, "--model", "parrot/C", "--task", "twice", "--out", tmp_path / "run"]
    done = medthink_with(PLUGIN, *words)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run/predictions.jsonl").read_text().splitlines()]
    assert [(row["prediction"], row["tokens"]["input"], len(row["calls"])) for row in rows] == [("C", 20, 2)] * 5
    manifest = json.loads((tmp_path / "run/run.json").read_text())
    assert manifest["task"] == "twice" and set(manifest["prompts"]) == {"summary", "differential"}
    assert manifest["progress"]["reported_models"] == ["parrot-C"]
    assert manifest["progress"]["attempts"] == 10


def test_an_added_metric_is_scored_and_shown(bench: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", bench, task="twi")
    done = medthink_with(PLUGIN, "score", run)
    assert done.returncode == 0 and "length_share" in done.stdout, done.stderr
    steps = json.loads((run / "scores.json").read_text())["steps"]
    values = [
        metric["value"]["value"] for step in steps for metric in step["metrics"] if metric["metric"] == "length_share"
    ]
    assert len(values) == 2 and all(0 < value <= 1 for value in values)


def test_a_text_of_an_added_task_is_stored_scored_shown_and_exported(bench: Path, tmp_path: Path) -> None:
    run, page, tables = tmp_path / "run", tmp_path / "report.html", (tmp_path / "runs.csv", tmp_path / "runs.md")
    words = ["--model", "parrot/C", "--task", "impression", "--out", run]
    for command in (
        ["run", bench, *words],
        ["score", run],
        ["report", run, "--out", page, "--csv", tables[0], "--markdown", tables[1]],
        ["show", run, "102", "--html", tmp_path / "case.html"],
    ):
        done = medthink_with(PLUGIN, *command)
        assert done.returncode == 0, (command, done.stderr)
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    assert [(row["prediction"], row["texts"]) for row in rows] == [("C", {"impression": "A mass."})] * 5
    scores = json.loads((run / "scores.json").read_text())
    assert [(one["step"], one["states"]) for one in scores["steps"]] == [("impression", {"ok": 5})]
    assert scores["answers"]["n_cases"] == 5
    assert "Impression" in page.read_text() and "A mass." in page.read_text()
    assert "impression_rougeL" in tables[0].read_text() and "Impression, ROUGE-L" in tables[1].read_text()
    assert "<h3>Impression</h3>" in (tmp_path / "case.html").read_text()
    # Without its package the run can be listed, and is not scored as something else.
    (run / "scores.json").unlink()
    assert medthink_with(tmp_path, "show", run).returncode == 0
    unknown = medthink_with(tmp_path, "score", run)
    assert unknown.returncode == 2 and "no such task: impression" in unknown.stderr


def test_without_the_package_its_names_are_unknown(bench: Path, tmp_path: Path) -> None:
    done = medthink_with(tmp_path, "run", bench, "--model", "parrot/C", "--out", tmp_path / "run")
    assert done.returncode == 2 and "parrot" in done.stderr and "Traceback" not in done.stderr
    done = medthink_with(PLUGIN, "run", bench, "--model", "nobody/C", "--out", tmp_path / "run")
    assert done.returncode == 2 and "parrot/NAME" in done.stderr


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("[medthink.tasks]\ntwice = tiny_broken:TASK\n", "cannot be loaded"),
        ("[medthink.tasks]\ntwice = json:dumps\n", "is not a Task"),
        ("[medthink.tasks]\ntwice = tiny:TWICE\n[medthink.models]\nx = json:y\n", ""),
    ],
)
def test_a_broken_package_is_named_in_one_message(bench: Path, tmp_path: Path, entry: str, told: str) -> None:
    folder = tmp_path / "broken/broken-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(entry)
    model = "baseline/random" if told else "x/y"
    words = ["run", bench, "--model", model, "--task", "twice" if told else "answer", "--out", tmp_path / "run"]
    done = medthink_with(tmp_path / "broken", *words)
    assert done.returncode == 2 and (told or "cannot be loaded") in done.stderr and "Traceback" not in done.stderr
