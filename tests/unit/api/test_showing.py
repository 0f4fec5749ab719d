"""What a notebook shows of a value: one line, or HTML, and nothing withheld in sight."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

import medthink
from medthink.cases.case import Case, ImageReference, Reference
from small_benchmark import write_benchmark

FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
MARKS = ("MARK-letter", "MARK-text", "MARK-caption", "MARK-findings", "MARK-discussion", "MARK-chapter")


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "bench", cases=6)


@pytest.fixture
def marked(bench: Path) -> Case:
    """A case with a mark in every withheld field that a person could read."""
    case = next(iter(medthink.Benchmark.open(bench)["test"]))
    images = tuple(ImageReference("MARK-caption", one.modality, one.sub_modality) for one in case.reference.images)
    reference: Reference = replace(
        case.reference,
        images=images,
        answer="MARK-letter",
        answer_text="MARK-text",
        findings="MARK-findings",
        discussion="MARK-discussion",
        icd_chapter="MARK-chapter",
    )
    return replace(case, title="MARK-text", reference=reference, extra={"note": "MARK-discussion"})


def lines_of(value: object) -> Iterator[str]:
    """Every way in which a value shows itself as text."""
    yield repr(value)
    yield str(value)
    out = io.StringIO()
    Console(file=out, width=500).print(value)
    yield out.getvalue().strip()


def test_a_case_shows_itself_in_a_line_without_anything_withheld(marked: Case) -> None:
    for value in (marked, marked.reference, marked.reference.images[0], [marked], {"case": marked}):
        for line in lines_of(value):
            assert not [mark for mark in MARKS if mark in line]
            assert len(line) < 200 and "\n" not in line
    assert repr(marked) == "Case(100, 'test': 2 images)"


def test_a_case_in_a_notebook_has_its_images_and_its_reference_folded(marked: Case) -> None:
    page = marked._repr_html_()
    assert page.count("<img src=") == len(marked.question.images)
    seen = FOLDED.sub("", page)
    assert marked.question.history in seen and marked.question.options["E"] in seen
    assert not [mark for mark in MARKS if mark in seen]
    assert {mark for mark in MARKS if mark in page} == set(MARKS) - {"MARK-chapter"}


def test_what_a_case_says_is_never_markup(marked: Case) -> None:
    evil = "<script>alert(1)</script></details>"
    case = replace(marked, question=replace(marked.question, history=evil, options={"A": evil}))
    case = replace(case, reference=replace(case.reference, discussion=evil))
    assert "<script" not in case._repr_html_()
    assert case._repr_html_().count("</details>") == 1


def test_an_image_that_cannot_be_read_says_so(bench: Path) -> None:
    case = next(iter(medthink.Benchmark.open(bench)["test"]))
    (bench / case.question.images[0].path).write_bytes(b"no picture")
    page = case._repr_html_()
    assert page.count("<img src=") == 1 and 'role="img"' in page


def test_a_benchmark_shows_its_splits(bench: Path) -> None:
    benchmark = medthink.Benchmark.open(bench)
    assert repr(benchmark) == f"Benchmark({str(bench)!r}: train, test)"
    assert repr(benchmark["test"].filter(modality="CT")) == f"Benchmark({str(bench)!r}: test, filtered)"
    assert "<td>train</td><td>4</td>" in benchmark._repr_html_()
    assert "<td>test</td><td>0</td>" in benchmark.filter(modality="MRI")._repr_html_()


def test_a_run_shows_its_progress(bench: Path, tmp_path: Path) -> None:
    part = medthink.run(bench, model="baseline/random", out=tmp_path / "run", max_calls=2)
    assert 'value="2" max="6"' in part._repr_html_() and "unfinished" in part._repr_html_()
    run = medthink.run(bench, model="baseline/random", out=tmp_path / "run")
    page = run._repr_html_()
    assert 'value="6" max="6"' in page and "6 ok" in page and "complete" in page and "$0.00" in page
    assert [line.count("baseline/random") for line in lines_of(run)] == [1, 1, 1]


def test_scores_and_comparisons_show_numbers_and_no_answer(bench: Path, tmp_path: Path) -> None:
    runs = [medthink.run(bench, model=f"baseline/{name}", out=tmp_path / name) for name in ("random", "longest")]
    scores, comparison = runs[0].score(), medthink.compare(runs)
    gold = json.dumps([one.gold for one in scores.cases])
    for value in (scores, comparison):
        for line in lines_of(value):
            assert "gold" not in line and gold not in line and "\n" not in line
            assert len(line) < 400
        page = value._repr_html_()
        assert "<table>" in page and "gold" not in page and "Disease" not in page
    assert re.search(r"accuracy \d+\.\d % \(", repr(scores))
    assert "6 ok" in scores._repr_html_()
    assert "random" in comparison._repr_html_() and "longest" in comparison._repr_html_()


def test_a_check_shows_how_many_problems_and_each_code(bench: Path) -> None:
    report = medthink.check(bench)
    assert re.fullmatch(r"CheckReport\(10 cases: \d+ errors, \d+ warnings\)", repr(report))
    for code in report.counts:
        assert code in report._repr_html_()
