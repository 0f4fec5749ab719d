"""A packed run is a valid submission whose traces lead to the same letters; forged traces do not pass."""

import json

import pytest

from made_runs import make_run
from medthink.board.checking import check_file, describe_overlap
from medthink.board.packing import pack_run
from medthink.cases.benchmark import Benchmark
from medthink.core.errors import UsageError
from medthink.runs.session import run as run_model
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction


@pytest.fixture(scope="module")
def packed(tmp_path_factory, bench):
    folder = tmp_path_factory.mktemp("packed")
    run_model(bench, model="baseline/random", out=folder / "run")
    pack_run(folder / "run", folder / "s.jsonl")
    return folder / "s.jsonl"


def change(packed, tmp_path, edit):
    rows = [json.loads(line) for line in packed.read_text().splitlines()]
    edit(rows)
    path = tmp_path / "changed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_packed_run_is_valid_and_traced(packed, held):
    checked = check_file(packed, held)
    assert checked.submission.problems == ()
    assert (checked.provenance, checked.doubts) == ("traced", ())


def test_a_packed_run_holds_no_reference_and_no_place(packed, bench):
    text = packed.read_text()
    assert "WITHHELD" not in text
    assert str(bench) not in text


def test_runs_of_twi_and_of_several_samples_are_traced_too(held, bench, tmp_path):
    half = Condition(findings="self", summary="self", image_share=0.5, option_order="seeded", samples=2)
    run_model(bench, model="baseline/random", task="twi", condition=half, out=tmp_path / "run")
    pack_run(tmp_path / "run", tmp_path / "s.jsonl")
    checked = check_file(tmp_path / "s.jsonl", held)
    assert (checked.submission.problems, checked.provenance, checked.doubts) == ((), "traced", ())
    first = json.loads((tmp_path / "s.jsonl").read_text().splitlines()[0])
    assert len(first["prediction_twi"]["step1_per_image_findings"]) == 2


def test_a_letter_that_the_replies_do_not_give_is_found(packed, held, tmp_path):
    def forge(rows):
        rows[3]["prediction"] = "A" if rows[3]["prediction"] != "A" else "B"

    checked = check_file(change(packed, tmp_path, forge), held)
    assert checked.provenance == "scored"
    assert "the replies give" in checked.doubts[0]


def test_a_reply_to_another_prompt_is_found(packed, held, tmp_path):
    def forge(rows):
        rows[2]["trace"]["calls"][0]["asked"] = "0" * 64

    checked = check_file(change(packed, tmp_path, forge), held)
    assert checked.provenance == "scored"
    assert "case" in checked.doubts[0]


def test_a_condition_that_was_not_run_is_found(packed, held, tmp_path):
    def forge(rows):
        rows[0]["trace"]["manifest"]["condition"]["temperature"] = 0.5

    assert check_file(change(packed, tmp_path, forge), held).provenance == "scored"


@pytest.mark.parametrize("trace", [None, 3, {"calls": 3}, {"manifest": {}}, {"manifest": None, "calls": []}])
def test_traces_that_are_none_leave_the_scores(packed, held, tmp_path, trace):
    def strip(rows):
        for row in rows:
            row["trace"] = trace

    checked = check_file(change(packed, tmp_path, strip), held)
    assert (checked.provenance, checked.doubts) == ("scored", ())
    assert checked.scores is not None


def test_a_discussion_cannot_be_submitted(bench, tmp_path):
    make_run(tmp_path / "run", bench, task="discussion")
    with pytest.raises(UsageError, match="no letters"):
        pack_run(tmp_path / "run", tmp_path / "s.jsonl")


def test_rationales_that_repeat_withheld_text_are_flagged(bench):
    case = next(iter(Benchmark.open(bench)["test"]))
    copied = " ".join(f"word{number}" for number in range(20))
    from msgspec.structs import replace

    known = replace(case, reference=replace(case.reference, discussion=f"It was {copied}."))
    said = Prediction(case=case.id, split="test", sample=0, state="ok", prediction="A", prediction_rationale=copied)
    assert "1 rationales repeat 15 or more words" in describe_overlap([said], {case.id: known})[0]
    assert describe_overlap([said], {case.id: case}) == []
    shown = replace(known, question=replace(case.question, history=copied))
    assert describe_overlap([said], {case.id: shown}) == []
