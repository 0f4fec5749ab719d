"""A submission is read to its end: every problem is named by line and field, and gold in it is never read."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medthink.cases.benchmark import Benchmark
from medthink.core.errors import DataError
from medthink.scoring.submission_file import problem_lines, read_submission, refuse_problems
from small_benchmark import make_row, write_benchmark


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    bench = write_benchmark(tmp_path_factory.mktemp("data") / "bench", 6)
    return {case.id: case for case in Benchmark.open(bench)["test"]}


def write(path: Path, rows) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def rows_of(cases, **fields):
    return [{"title": case.title, "prediction": "A", **fields} for case in cases.values()]


def told(submission):
    return [(one.code, one.line, one.field) for one in submission.problems]


def test_a_whole_file_has_no_problems(cases, tmp_path):
    read = read_submission(write(tmp_path / "s.jsonl", rows_of(cases)), cases)
    assert read.problems == ()
    assert [one.prediction for one in read.predictions] == ["A"] * 6


def test_all_released_columns_may_be_there_and_gold_in_them_is_never_read(cases, tmp_path):
    rows = [make_row(number, 2) | {"correct_answer": "B", "prediction": "B"} for number in cases]
    read = read_submission(write(tmp_path / "s.jsonl", rows), cases)
    assert read.problems == ()
    assert "WITHHELD" not in repr(read)


def test_every_problem_is_told_at_once_with_its_line_and_field(cases, tmp_path):
    good = {"title": "Case number 100", "prediction": "A"}
    rows = [
        good,
        "{not json",
        "[]",
        {"prediction": "A"},
        {"title": "Case 12 of 20", "prediction": "A"},
        {"title": "Case number 999", "prediction": "A"},
        good | {"prediction": "B"},
        {"title": "Case number 101", "prediction": "F"},
        {"title": "Case number 102"},
        {"title": "Case number 103", "prediction": "A", "options": {"A": "Disease B103"}},
        {"title": "Case number 104", "prediction": "A", "prediction_rationale": 3, "prediction_twi": {"step1": []}},
        {"title": "Case number 105", "prediction": "A", "sample": -1},
    ]
    read = read_submission(write(tmp_path / "s.jsonl", rows), cases)
    assert told(read) == [
        ("line", 2, ""),
        ("line", 3, ""),
        ("case", 4, "title"),
        ("case", 5, "title"),
        ("case", 6, "title"),
        ("twice", 7, "title"),
        ("letter", 8, "prediction"),
        ("letter", 9, "prediction"),
        ("version", 10, "options"),
        ("text", 11, "prediction_rationale"),
        ("steps", 11, "prediction_twi"),
        ("sample", 12, "sample"),
        ("missing", None, ""),
    ]
    lines = list(problem_lines(read.problems))
    assert lines[6].startswith("line 8, prediction: “F” is not one of A, B, C, D, E.")
    assert "no line for case 105" in lines[-1]


def test_a_lower_case_letter_is_a_letter_and_null_is_no_answer(cases, tmp_path):
    rows = rows_of(cases)
    rows[0]["prediction"], rows[1]["prediction"] = " b ", None
    read = read_submission(write(tmp_path / "s.jsonl", rows), cases)
    assert read.problems == ()
    assert [one.prediction for one in read.predictions][:2] == ["B", None]
    assert read.predictions[1].state == "unparsed"


def test_several_samples_of_a_case_are_told_apart(cases, tmp_path):
    rows = [{"title": case.title, "prediction": "A", "sample": n} for n in range(2) for case in cases.values()]
    read = read_submission(write(tmp_path / "s.jsonl", rows[:-1]), cases)
    assert len(read.predictions) == 12
    assert [str(one) for one in read.problems] == ["no line for case 105, sample 1"]


def test_findings_that_cannot_be_matched_to_images_are_told(cases, tmp_path):
    steps = {
        "step1_per_image_findings": ["one"],
        "step2_integrated_summary": None,
        "step3_differential_reasoning": None,
    }
    read = read_submission(write(tmp_path / "s.jsonl", rows_of(cases, prediction_twi=steps)), cases)
    assert {one.message for one in read.problems} == {"1 findings for 2 images"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf{}\n", "byte-order mark"),
        (b"{}\r\n", "CRLF"),
        (b'{"title": "\xff"}\n', "not UTF-8"),
        (b'{"title": NaN}\n', "not JSON"),
        (b'{"title": 1, "title": 2}\n', "the same key"),
        (b"[" * 5000 + b"]" * 5000 + b"\n", "not JSON"),
    ],
)
def test_files_that_are_no_json_lines_are_told_in_words(cases, tmp_path, data, message):
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    assert message in read_submission(path, cases).problems[0].message


def test_an_oversized_file_is_refused_before_it_is_read(cases, tmp_path):
    read = read_submission(write(tmp_path / "s.jsonl", rows_of(cases)), cases, max_bytes=10)
    assert [one.code for one in read.problems] == ["file"]
    assert "at most 10 are accepted" in read.problems[0].message


def test_what_scoring_refuses_names_the_first_and_counts_the_others(cases, tmp_path):
    path = write(tmp_path / "s.jsonl", ["{x", "[]", *rows_of(cases)])
    with pytest.raises(DataError, match="1 more: medthink submission check"):
        refuse_problems(path, read_submission(path, cases).problems)


@settings(max_examples=200)
@given(data=st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_no_bytes_break_the_reader(cases, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "s.jsonl"
    path.write_bytes(data)
    read = read_submission(path, cases)
    assert read.problems and len(read.predictions) == 6


_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)


@settings(max_examples=200)
@given(
    row=st.dictionaries(
        st.sampled_from(["title", "case", "sample", "prediction", "prediction_rationale", "prediction_twi", "options"]),
        _VALUES | st.lists(_VALUES, max_size=3) | st.dictionaries(st.text(max_size=5), _VALUES, max_size=3),
    )
)
def test_no_row_breaks_the_reader(cases, tmp_path_factory, row):
    path = tmp_path_factory.mktemp("fuzz") / "s.jsonl"
    try:
        path.write_text(json.dumps(row | {"case": 100}) + "\n")
    except UnicodeEncodeError:
        return
    assert len(read_submission(path, cases).predictions) % 6 == 0
