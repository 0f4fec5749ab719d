"""Files for lmms-eval and VLMEvalKit: read back here, and by the packages themselves where they are installed."""

import ast
import base64
import csv
import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from PIL import Image

from medthink.bridges.targets import TargetOptions, write_target
from medthink.cases.benchmark import Benchmark
from medthink.core.errors import DataError, UsageError
from medthink.models.request import Reply
from medthink.workflow.ask import Unparsed
from medthink.workflow.parsing import parse_answer
from small_benchmark import make_row, picture, write_benchmark
from styled_replies import REPLIES, options_of

ODD_HISTORY = 'He said "no"\tand left;\n\na 5 µm lesion.'


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


@pytest.fixture
def odd_bench(tmp_path):
    """A case with a text that needs quoting and one image, and a case without any."""
    root = write_benchmark(tmp_path / "odd", cases=4)
    rows = [make_row(100, 2), make_row(101, 1) | {"CLINICAL_HISTORY": ODD_HISTORY}, make_row(102, 2), make_row(103, 0)]
    (root / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


@pytest.fixture
def odd_table(odd_bench, tmp_path):
    export("vlmevalkit", odd_bench, tmp_path / "MedThinkSmall.tsv")
    return tmp_path / "MedThinkSmall.tsv"


def read_table(path):
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


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
    said |= {"A radiologist should look at this.": 0.0, "Not B but A.": 1.0}
    assert {text: utils.score(rows[0], [text])["accuracy"] for text in said} == said


def test_the_task_for_lmms_eval_reads_every_reply_as_parse_answer_does(task):
    utils = load_utils(task)
    for row in REPLIES:
        options = options_of(row)
        read = parse_answer(Reply(text=row["reply"]), options)
        doc = {"options": [{"letter": letter, "text": text} for letter, text in options.items()]}
        scored = {letter for letter in options if utils.score(doc | {"answer": letter}, [row["reply"]])["accuracy"]}
        assert scored == (set() if isinstance(read, Unparsed) else {read.letter})


def test_vlmevalkit_gets_images_as_a_list_of_base64(table):
    rows = read_table(table)
    assert [row["index"] for row in rows] == ["100", "101", "102"]
    assert [base64.b64decode(one) for one in ast.literal_eval(rows[0]["image"])] == [picture(10001), picture(10002)]
    assert rows[1]["answer"] == "B" and rows[1]["C"] == "Disease C101" and "WITHHELD" not in str(rows)


def test_a_case_without_images_is_one_that_vlmevalkit_leaves_out_and_that_is_said(odd_bench, tmp_path):
    written = export("vlmevalkit", odd_bench, tmp_path / "odd.tsv")
    # What is short and not empty is the number of another case whose images it shares.
    assert [row["image"] == "" for row in read_table(tmp_path / "odd.tsv")] == [False, False, False, True]
    own_reading, left_out = written.warnings
    assert "own rules" in own_reading
    assert left_out == "1 case has no image: VLMEvalKit leaves it out of its score"


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


# Where `make bench-peers` installs each of them, apart.
PEERS = Path(__file__).parents[3] / ".venv-peers"
LOAD_TASK = """
import json, sys
sys.path.insert(0, sys.argv[2])
from peer_vlmeval import name_operators
name_operators()
from lmms_eval import tasks
(task,) = tasks.get_task_dict(["medthink_lmms"], tasks.TaskManager(include_path=sys.argv[1])).values()
docs = list(task.test_docs())
shown = [[len(task.doc_to_visual(doc)), task.doc_to_text(doc)] for doc in docs]
print(json.dumps([[doc["case"] for doc in docs], shown, task.process_results(docs[0], ["A"])]))
"""
LOAD_TABLE = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[2])
from peer_vlmeval import name_operators
name_operators()
from PIL import Image
from vlmeval.dataset import build_dataset
table = build_dataset("MedThinkSmall")
prompts = [table.build_prompt(row) for row in range(len(table))]
pixels = [[hashlib.sha256(Image.open(part["value"]).convert("RGB").tobytes()).hexdigest()
           for part in prompt if part["type"] == "image"] for prompt in prompts]
answers = [table[row]["answer"] for row in range(len(table))]
print(json.dumps([type(table).__name__, pixels, [prompt[-1]["value"] for prompt in prompts], answers]))
"""


def load_by(name, script, folder):
    """What the package itself makes of the files, in its own environment."""
    python = PEERS / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{name} is not installed: make bench-peers installs it")
    # Ours last, for the peers' own versions of what both need.
    own = [str(PEERS.parent / "src"), sysconfig.get_path("purelib")]
    script = f"import sys; sys.path += {own!r}\n{script}"
    env = os.environ | {"LMUData": str(folder), "HOME": str(folder), "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    words = [python, "-c", script, folder, PEERS.parent / "bench"]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_lmms_eval_itself_loads_the_task(task):
    cases, shown, scored = load_by("lmms_eval", LOAD_TASK, task)
    assert cases == [100, 101, 102] and [images for images, _ in shown] == [2, 2, 2]
    assert "Disease A100" in shown[0][1] and scored == {"accuracy": 1.0}


def test_vlmevalkit_itself_loads_the_table(odd_table):
    kind, pixels, texts, answers = load_by("vlmeval", LOAD_TABLE, odd_table.parent)
    assert (kind, answers) == ("CustomMCQDataset", ["A", "B", "C"])
    assert pixels == [[pixels_of(10001), pixels_of(10002)], [pixels_of(10101)], [pixels_of(10201), pixels_of(10202)]]
    assert "Disease A100" in texts[0] and ODD_HISTORY in texts[1]


def pixels_of(seed):
    return hashlib.sha256(Image.open(io.BytesIO(picture(seed))).convert("RGB").tobytes()).hexdigest()


def test_a_sixth_option_is_in_the_table(tmp_path):
    root = write_benchmark(tmp_path / "six", cases=1)
    row = json.loads((root / "test.jsonl").read_text())
    row["options"] |= {"F": "Disease F"}
    row |= {"correct_answer": "F", "correct_answer_text": "Disease F"}
    (root / "test.jsonl").write_text(json.dumps(row) + "\n")
    export("vlmevalkit", root, tmp_path / "T.tsv")
    (told,) = read_table(tmp_path / "T.tsv")
    assert (told["F"], told["answer"]) == ("Disease F", "F")
