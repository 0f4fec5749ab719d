"""A run as a file: its fields are the flags, and every run keeps its own."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from medthink.cli.command import run_command
from medthink.cli.run.sweep import read_sweep_plan
from small_benchmark import write_benchmark

PLAN = """
data = "bench"
model = "baseline/random"
task = "twi"
image-share = "50%"
show_history = false
cases = [100, 102]
out = "runs/planned"
"""


@pytest.fixture
def folder(tmp_path):
    write_benchmark(tmp_path / "bench", cases=4)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def manifest(run):
    told = json.loads((run / "run.json").read_text())
    return {name: told[name] for name in ("model", "task", "condition", "selection")}


def test_a_plan_is_the_same_run_as_its_flags(folder):
    assert run_command(["run", str(folder / "plan.toml")]) == 0
    words = ["--model", "baseline/random", "--task", "twi", "--image-share", "50%", "--hide-history"]
    out = folder / "runs/typed"
    assert run_command(["run", str(folder / "bench"), *words, "--cases", "100,102", "--out", str(out)]) == 0
    assert manifest(folder / "runs/planned") == manifest(out)


def test_every_run_keeps_its_plan_and_goes_on_by_it(folder, capsys):
    out = folder / "runs/typed"
    assert (
        run_command(["run", str(folder / "bench"), "--model", "baseline/random", "--out", str(out), "--max-calls", "2"])
        == 1
    )
    kept = tomllib.loads((out / "plan.toml").read_text())
    assert kept["data"] == "../../bench"
    assert (kept["model"], kept["split"], kept["concurrency"], kept["max_calls"]) == ("baseline/random", "test", 16, 2)
    capsys.readouterr()
    assert run_command(["run", str(out / "plan.toml"), "--max-calls", "9"]) == 0
    assert "4 of 4 done" in capsys.readouterr().out


def test_a_flag_goes_before_the_field(folder):
    out = folder / "runs/other"
    assert run_command(["run", str(folder / "plan.toml"), "--task", "answer", "--out", str(out)]) == 0
    assert manifest(out)["task"] == "answer"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tsk = 'answer'", "plan.toml: tsk: no such field\n  → did you mean task?"),
        ("seed = 'x'", "plan.toml: seed: 'x' is not a valid integer"),
        ("schema = 3", "plan.toml: schema: 3 is not true or false"),
        ("samples = true", "plan.toml: samples: True is not a value of this flag"),
        ("dry_run = true", "plan.toml: dry_run: no such field"),
        ("seed", "plan.toml: not TOML"),
    ],
)
def test_what_no_flag_takes_is_refused_by_file_and_field(folder, line, message, capsys):
    (folder / "plan.toml").write_text(PLAN + line + "\n")
    assert run_command(["run", str(folder / "plan.toml")]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_a_plan_without_data_and_a_plan_that_is_not_there_are_refused(folder, capsys):
    (folder / "plan.toml").write_text("model = 'baseline/random'\n")
    assert run_command(["run", str(folder / "plan.toml")]) == 2
    assert "plan.toml: data: the benchmark is missing" in capsys.readouterr().err
    assert run_command(["run", str(folder / "absent.toml")]) == 2
    assert "absent.toml: no such file" in capsys.readouterr().err


def test_the_plans_of_the_docs_are_plans(tmp_path, capsys):
    page = Path(__file__).resolve().parents[3] / "docs/running.md"
    single, sweep = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    write_benchmark(tmp_path / "bench", cases=1)
    (tmp_path / "plan.toml").write_text(single)
    assert run_command(["run", str(tmp_path / "plan.toml"), "--dry-run"]) == 0
    (tmp_path / "sweep.toml").write_text(sweep)
    assert len(read_sweep_plan(tmp_path / "sweep.toml").runs) == 3 * 6 * 2
