"""The SLURM script of docs/clusters.md, run as it stands there under the variables that the scheduler sets."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medthink.runs.run import Run
from processes import Server
from small_benchmark import write_benchmark

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
SCRIPT, AFTERWARDS = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a benchmark, and a `medthink` on the path that is the one under test."""
    monkeypatch.chdir(tmp_path)
    write_benchmark(tmp_path / "bench", cases=12)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "medthink"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m medthink "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    return tmp_path


def start_job(number: int, model: str, *, count: int = 2) -> "subprocess.Popen[str]":
    """The script with another model, as one job of the array."""
    text, replaced = re.subn(
        r"^run=\(medthink run bench .*\)$", f"run=(medthink run bench {model})", SCRIPT, flags=re.M
    )
    assert replaced == 1
    Path("shard.sh").write_text(text)
    scheduler = {
        "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(count),
    }  # fmt: skip
    return subprocess.Popen(["bash", "shard.sh"], env=os.environ | scheduler, stderr=subprocess.PIPE, text=True)


def test_the_array_makes_the_shards_and_merge_the_run(place):
    for number in (1, 2):
        job = start_job(number, "--model baseline/random")
        assert job.communicate(timeout=240)[1] is not None and job.returncode == 0
    assert not list((place / "scratch").iterdir())
    merge = next(line.split("#")[0] for line in AFTERWARDS.splitlines() if line.startswith("medthink merge"))
    subprocess.run(["bash", "-c", merge], check=True, stdout=subprocess.DEVNULL)
    made = Run.open("runs/qwen")
    assert made.manifest.progress.is_complete and len(list(made.predictions())) == 12


@pytest.fixture
def server():
    server = Server("--hold-after", "3")
    yield server
    server.stop()


def test_a_job_that_runs_out_of_time_keeps_what_is_done_and_the_next_goes_on(place, server):
    model = f"--model server/qwen --base-url {server.url}/v1 --image-share 0 --concurrency 1"
    job = start_job(1, model)
    server.wait_for(4)
    job.send_signal(signal.SIGTERM)
    told = job.communicate(timeout=240)[1]
    assert "keeps every finished call" in told
    kept = Run.open("runs/qwen.parts/1").manifest.progress
    assert kept.calls["done"] == 3 and not kept.is_complete
    server.open()
    again = start_job(1, model)
    again.communicate(timeout=240)
    assert again.returncode == 0 and Run.open("runs/qwen.parts/1").manifest.progress.is_complete
