"""Files for lmms-eval and VLMEvalKit: read back here, and by the real packages where they are installed."""

import ast
import base64
import csv
import importlib.util
import json
import sys

import pytest

from medthink.bridges.targets import TargetOptions, write_target
from medthink.cases.benchmark import Benchmark
from medthink.core.errors import DataError, UsageError
from small_benchmark import picture, write_benchmark


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("harness") / "bench", cases=3)


def export(name, bench, out, **options):
    return write_target(name, Benchmark.open(bench), out, TargetOptions(**options), lambda *_: None)


@pytest.fixture
def task(bench, tmp_path):
    export("lmms-eval", bench, tmp_path / "lmms")
    return tmp_path / "lmms"


@pytest.fixture
def table(bench, tmp_path):
    export("vlmevalkit", bench, tmp_path / "MedThinkSmall.tsv")
    return tmp_path / "MedThinkSmall.tsv"


def load_utils(folder):
    spec = importlib.util.spec_from_file_location("lmms_utils", folder / "utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lmms_eval_gets_images_in_order_and_scores_one_letter_alone(task):
    rows = [json.loads(line) for line in (task / "test.jsonl").read_text().splitlines()]
    assert [row["case"] for row in rows] == [100, 101, 102]
    utils = load_utils(task)
    assert [image.size for image in utils.read_images(rows[0])] == [(24, 24), (24, 24)]
    assert (task / rows[0]["images"][1]).read_bytes() == picture(100 * 100 + 2)
    assert "A. Disease A100" in utils.write_question(rows[0]) and "WITHHELD" not in str(rows)
    said = {"A": 1.0, "The answer is A.": 1.0, "B": 0.0, "A or B": 0.0, "nothing": 0.0}
    assert {text: utils.score(rows[0], [text])["accuracy"] for text in said} == said


def test_vlmevalkit_gets_images_as_a_list_of_base64(table):
    csv.field_size_limit(sys.maxsize)
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert [row["index"] for row in rows] == ["100", "101", "102"]
    assert [base64.b64decode(one) for one in ast.literal_eval(rows[0]["image"])] == [picture(10001), picture(10002)]
    assert rows[1]["answer"] == "B" and rows[1]["C"] == "Disease C101" and "WITHHELD" not in str(rows)


def test_another_split_and_what_is_wrong(bench, tmp_path):
    export("vlmevalkit", bench, tmp_path / "train.tsv", split="train")
    assert len((tmp_path / "train.tsv").read_text().splitlines()) > 4
    with pytest.raises(UsageError, match="tsv"):
        export("vlmevalkit", bench, tmp_path / "x.csv")
    (bench / "images/case00003/i3x1.jpg").unlink()
    with pytest.raises(DataError, match="i3x1"):
        export("lmms-eval", bench, tmp_path / "broken", split="train")
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize(("target", "out"), [("lmms-eval", "task"), ("vlmevalkit", "table.tsv")])
def test_an_image_that_does_not_decode_is_refused(tmp_path, target, out):
    bench = write_benchmark(tmp_path / "bench", cases=1)
    image = bench / "images/case00001/i1x1.jpg"
    image.write_bytes(image.read_bytes()[:-200])
    with pytest.raises(DataError, match="cannot be decoded"):
        export(target, bench, tmp_path / out, split="train")
    assert not (tmp_path / out).exists()


def test_lmms_eval_itself_loads_the_task(task):
    tasks = pytest.importorskip("lmms_eval.tasks", reason="lmms-eval is not installed here")
    manager = tasks.TaskManager(include_path=str(task))
    (loaded,) = tasks.get_task_dict(["medthink_lmms"], manager).values()
    docs = list(loaded.test_docs())
    assert [doc["case"] for doc in docs] == [100, 101, 102]
    assert len(loaded.doc_to_visual(docs[0])) == 2 and "Disease A100" in loaded.doc_to_text(docs[0])
    assert loaded.process_results(docs[0], ["A"]) == {"accuracy": 1.0}


def test_vlmevalkit_itself_loads_the_table(table, monkeypatch):
    monkeypatch.setenv("LMUData", str(table.parent))
    dataset = pytest.importorskip("vlmeval.dataset", reason="VLMEvalKit is not installed here")
    loaded = dataset.build_dataset("MedThinkSmall")
    assert type(loaded).__name__ == "CustomMCQDataset" and len(loaded.data) == 3
    message = loaded.build_prompt(0)
    assert [part["type"] for part in message] == ["image", "image", "text"]
    assert "Disease A100" in message[-1]["value"]
