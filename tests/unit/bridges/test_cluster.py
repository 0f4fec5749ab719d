"""Work on a Ray cluster: here a local one of two workers, started once for all these tests."""

import json
import os
import re
import signal
import tempfile
import threading
from pathlib import Path

import pytest

from calling import call_command
from medthink.cli.data.data import data_check as check_command
from medthink.cli.results.score import score as score_command
from medthink.cli.run.run import run as run_command
from medthink.core.errors import UsageError
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.run import Run
from processes import Server
from small_benchmark import write_benchmark

# On a busy machine Ray's workers take minutes to load torch.
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]
# A busy machine takes longer to start it than Ray waits by itself.
SETTINGS = {
    "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64, "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "200",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A running cluster; a command finds it as it would find one that `ray start` made."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        # It reads them when it is imported.
        ray = pytest.importorskip("ray")
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, object_store_memory=80 * 1024**2,
            _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR",
        )  # fmt: skip
        yield ray
        ray.shutdown()


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_benchmark(tmp_path / "bench", cases=12)


def said(run: Path) -> list[tuple[object, ...]]:
    return [(one.case, one.sample, one.state, one.prediction, len(one.calls)) for one in Run.open(run).predictions()]


def test_a_run_in_shards_on_the_cluster_is_the_run_of_one_process(cluster, bench):
    command = ["bench", "--model", "baseline/retrieval", "--task", "twi"]
    assert call_command(run_command, [*command, "--out", "whole"]).exit_code == 0
    made = call_command(run_command, [*command, "--out", "runs/split", "--shards", "2", "--cluster", "ray"])
    assert made.exit_code == 0, made.output
    assert "shard 1/2: " in made.output and "shard 2/2: " in made.output
    assert said(Path("runs/split")) == said(Path("whole"))
    split, whole = Run.open("runs/split").manifest, Run.open("whole").manifest
    assert split.digest() == whole.digest() and split.progress.is_complete
    assert sorted(path.name for path in Path("runs").iterdir()) == ["split"]
    # From now on it is a run like any other.
    again = call_command(run_command, ["runs/split/plan.toml"])
    assert again.exit_code == 0 and "0 calls made" in again.output
    twice = call_command(run_command, [*command, "--out", "runs/split", "--shards", "2", "--cluster", "ray"])
    assert isinstance(twice.exception, UsageError) and "is already complete" in str(twice.exception)


def test_a_killed_worker_resumes_and_a_limit_leaves_shards_that_go_on(cluster, bench, monkeypatch):
    monkeypatch.delenv("MEDTHINK_SERVER_KEY", raising=False)
    server = Server("--hold-after", "4")
    command = [
        "bench", "--model", "server/qwen", "--base-url", f"{server.url}/v1", "--image-share", "0", "--concurrency", "2",
        "--out", "killed", "--shards", "2", "--cluster", "ray",
    ]  # fmt: skip
    try:
        limited = call_command(run_command, [*command, "--max-calls", "2"])
        assert isinstance(limited.exception, BudgetReached) and "shard " in str(limited.exception)
        assert server.requests == 2
        killed: list[int] = []
        killer = threading.Thread(target=kill_first_shard, args=(server, killed))
        killer.start()
        made = call_command(run_command, command)
        killer.join()
        assert made.exit_code == 0, made.output
        asked = server.requests
    finally:
        server.stop()
    assert [state for _, _, state, *_ in said(Path("killed"))] == ["ok"] * 12
    # One call of each shard is in flight at a time: none but the one that was cut off is sent again.
    assert asked == 13 and killed


def kill_first_shard(server: Server, killed: list[int]) -> None:
    """Kill the worker of shard 1 while the server holds a call of each shard."""
    try:
        server.wait_for(6)
        token = json.loads(Path("killed.shards/shards.json").read_text())["token"]
        lock = Path(tempfile.gettempdir()) / f"medthink-shards-{os.getuid()}" / token / "1" / ".lock"
        killed.append(int(re.match(r"process (\d+) ", lock.read_text())[1]))
        os.kill(killed[0], signal.SIGKILL)
    finally:
        server.open()


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(cluster, bench):
    server = Server("--hold-after", "4")
    command = [
        "bench", "--model", "server/qwen", "--base-url", f"{server.url}/v1", "--image-share", "0", "--concurrency", "2",
        "--out", "stopped", "--shards", "2", "--cluster", "ray",
    ]  # fmt: skip
    stopper = threading.Thread(target=interrupt_when_held, args=(server,))
    try:
        stopper.start()
        stopped = call_command(run_command, command)
        stopper.join()
        assert "Stopped. stopped.shards keeps the shards" in stopped.output
        made = [Path(f"stopped.shards/{number}/predictions.jsonl").read_text().count("\n") for number in (1, 2)]
        progress = [Run.open(f"stopped.shards/{number}").manifest.progress for number in (1, 2)]
        assert made == [one.states.get("ok", 0) for one in progress] and sum(made) == 4
        assert not any(one.is_complete for one in progress)
        server.open()
        assert call_command(run_command, command).exit_code == 0
        assert server.requests == 12 + 2, "only what was in flight is sent again"
    finally:
        server.stop()
    assert [state for _, _, state, *_ in said(Path("stopped"))] == ["ok"] * 12


def interrupt_when_held(server: Server) -> None:
    """End the command, as a scheduler does, while the server holds a call of each shard."""
    server.wait_for(6)
    os.kill(os.getpid(), signal.SIGTERM)


def test_images_are_checked_on_the_cluster_as_here(cluster, bench):
    next((bench / "images").rglob("*.jpg")).write_bytes(b"no image")
    here = call_command(check_command, ["bench", "--images", "--json"])
    there = call_command(check_command, ["bench", "--images", "--json", "--cluster", "ray"])
    assert json.loads(there.stdout) == json.loads(here.stdout)
    assert json.loads(here.stdout)["counts"]["image-format-refused"] == 1


def test_radcliq_is_computed_on_the_cluster_as_here(cluster, bench, tmp_path):
    weights = build_weights(tmp_path / "weights")
    assert call_command(run_command, ["bench", "--model", "baseline/random", "--task", "twi", "--out", "run"])
    flags = ["run", "--radcliq", "--radcliq-weights", "weights", "--json"]
    here = call_command(score_command, flags)
    there = call_command(score_command, [*flags, "--cluster", "ray"])
    assert there.exit_code == here.exit_code == 0, there.output
    mine, theirs = (radcliq_of(json.loads(result.stdout)) for result in (here, there))
    assert mine and theirs == pytest.approx(mine)
    assert weights.is_dir()


def build_weights(root: Path) -> Path:
    checkpoints = pytest.importorskip("radcliq_checkpoints")
    checkpoints.build_roberta(root / "distilroberta-base")
    vocabulary = checkpoints.build_bert_tokenizer(root / "bert-base-uncased")
    checkpoints.build_chexbert(root / "chexbert" / "chexbert.pth", vocabulary)
    checkpoints.build_radgraph(root / "radgraph" / "radgraph")
    return root


def radcliq_of(scored: list) -> dict[str, float]:
    """The values of RadCliQ and its components, by step."""
    metrics = [(step["step"], one) for step in scored[0]["steps"] for one in step["metrics"]]
    return {
        f"{step} {one['metric']}": one["value"]["value"]
        for step, one in metrics
        if one["metric"].startswith("radcliq") and one["value"] is not None
    }


def test_flags_that_do_not_go_together_are_refused_before_any_cluster_is_asked(bench):
    def refusal(command, *words):
        result = call_command(command, words)
        assert isinstance(result.exception, UsageError), result.output
        return str(result.exception)

    given = ("bench", "--model", "baseline/random", "--out", "run")
    assert "--shards requires --cluster" in refusal(run_command, *given, "--shards", "2")
    assert "--shards requires --cluster" in refusal(run_command, *given, "--cluster", "ray")
    both = (*given, "--shards", "2", "--cluster", "ray")
    assert "--shard cannot be combined with --cluster" in refusal(run_command, *both, "--shard", "1/2")
    assert "--batch cannot be combined with --cluster" in refusal(run_command, *both, "--batch")
    assert "add --images" in refusal(check_command, "bench", "--cluster", "ray")
    call_command(run_command, given)
    assert "add --radcliq" in refusal(score_command, "run", "--cluster", "ray")
