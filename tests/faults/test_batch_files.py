"""Runs whose batches a person carries out with `vllm run-batch`: files out, output in, no server spoken to."""

import json
import shutil

import pytest
from batch_server import BatchServer
from fault_server import answer_body, find_images

from medthink.core.errors import UsageError
from medthink.models.batches.files import OUTPUT
from medthink.runs.batches.run import export_requests
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.workflow.tasks import default_condition
from processes import finish, medthink
from small_benchmark import write_benchmark


@pytest.fixture
def bench(tmp_path):
    return write_benchmark(tmp_path / "bench", cases=4)


def order(bench, out, **changes):
    task = changes.get("task", "answer")
    known = {"benchmark": bench, "model": "server/Qwen/Qwen2.5-VL-7B", "out": out, "condition": default_condition(task)}
    return RunSpec(**(known | {"batch": True} | changes))


def run_batch(requests, output, *, skips=()):
    """What `vllm run-batch` makes of a file: one line a request, written at the end."""
    lines = []
    for line in requests.read_text().splitlines():
        asked = json.loads(line)
        assert (asked["method"], asked["url"]) == ("POST", "/v1/chat/completions")
        if asked["custom_id"] in skips:
            continue
        record = {"path": asked["url"], "images": list(find_images(asked["body"]))}
        response = {"status_code": 200, "request_id": "vllm-1", "body": answer_body("", record, asked["body"])}
        lines.append(json.dumps({"id": "vllm-2", "custom_id": asked["custom_id"], "response": response, "error": None}))
    output.write_text("\n".join(lines) + "\n")


def keys(requests):
    return [json.loads(line)["custom_id"] for line in requests.read_text().splitlines()]


def test_each_step_of_a_run_is_a_file_and_its_output_lies_beside_it(tmp_path, bench):
    out = tmp_path / "run"
    for step, calls in enumerate((8, 4, 4)):
        session = run_session(order(bench, out, task="twi"))
        (job,) = session.jobs
        assert job.calls == calls, step
        requests = out / "batches" / f"{job.mark}.jsonl"
        run_batch(requests, requests.with_name(f"{job.mark}{OUTPUT}"))
    session = run_session(order(bench, out, task="twi"))
    assert session.run.manifest.progress.states == {"ok": 4} and not session.jobs
    assert session.run.manifest.progress.cost_usd is None
    assert not list((out / "batches").iterdir())
    with BatchServer() as server:
        online = run_session(
            order(bench, tmp_path / "online", task="twi", batch=False, base_urls=(f"{server.url}/v1",))
        )
    letters = [[one.prediction for one in made.run.predictions()] for made in (session, online)]
    assert letters[0] == letters[1]


def test_requests_that_the_output_lacks_are_asked_again(tmp_path, bench):
    out = tmp_path / "run"
    (job,) = run_session(order(bench, out)).jobs
    requests = out / "batches" / f"{job.mark}.jsonl"
    run_batch(requests, requests.with_name(f"{job.mark}{OUTPUT}"), skips=keys(requests)[:1])
    (job,) = run_session(order(bench, out)).jobs
    assert job.calls == 1


def test_a_file_that_was_never_run_can_be_cancelled_and_asked_online(tmp_path, bench):
    run_session(order(bench, tmp_path / "run"))
    with BatchServer() as server:
        urls = (f"{server.url}/v1",)
        session = run_session(order(bench, tmp_path / "run", batch=False, cancel_batches=True, base_urls=urls))
    assert session.run.manifest.progress.states == {"ok": 4} and len(server.online) == 4


def test_the_requests_can_be_carried_away_and_the_output_brought_back(tmp_path, bench):
    out, requests, output = tmp_path / "run", tmp_path / "requests.jsonl", tmp_path / "output.jsonl"
    words = ("run", bench, "--model", "server/Qwen/Qwen2.5-VL-7B", "--batch", "--out", out)
    code, _, err = finish(medthink(*words))
    assert code == 0, err
    assert "vllm run-batch -i" in err and "--model Qwen/Qwen2.5-VL-7B" in err
    code, said, err = finish(medthink("export", out, "--format", "vllm-batch", "-o", requests))
    assert code == 0, err
    assert "4 requests" in said and len(keys(requests)) == 4
    run_batch(requests, output)
    cut = tmp_path / "cut.jsonl"
    cut.write_text(output.read_text()[:-50])
    code, _, err = finish(medthink("import", cut, "--out", out))
    assert code == 2 and "cut.jsonl:4" in err and "finished writing" in err
    code, said, err = finish(medthink("import", output, "--out", out))
    assert code == 0, err
    assert "4 requests answered" in said and "plan.toml" in said
    code, said, err = finish(medthink("run", out / "plan.toml"))
    assert code == 0 and "complete" in said, err


def test_an_output_of_another_run_and_a_run_without_requests_are_refused(tmp_path, bench):
    run_session(order(bench, tmp_path / "run"))
    (tmp_path / "other.jsonl").write_text('{"custom_id": "x", "response": null, "error": null}\n')
    code, _, err = finish(medthink("import", tmp_path / "other.jsonl", "--out", tmp_path / "run"))
    assert code == 2 and "check that this is the output for this run" in err
    shutil.rmtree(tmp_path / "run" / "batches")
    with pytest.raises(UsageError, match="no requests waiting"):
        export_requests(tmp_path / "run", tmp_path / "x.jsonl")
