"""Rulings: each settles its own question alone, none is lost, and an odd cell ends nothing else."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calling import call_command
from drafts import draft, read_drafts, rule, try_stage
from medthink.cases.case import Image, ImageReference
from medthink.cases.images.stores import NoImages
from medthink.cli.curate import curate
from medthink.core.errors import DataError
from medthink.curate.build import build
from medthink.curate.decision import read_decisions
from medthink.curate.draft import Draft
from medthink.curate.plan import WorkFolder, read_plan
from medthink.curate.review import answer_row, read_rows
from medthink.curate.rulings import JOURNAL, Answer, read_journal

GIVEN = {
    "history": "A fatty case of Osler disease? Mr. Schmidt, MRN 4711882, came.",
    "diagnosis": "Hereditary telangiectasia",
}


def test_a_suspected_leak_let_in_lets_no_name_through(tmp_path: Path):
    given = [draft(1, history="Fever with telangiectasias. Mr. Schmidt, MRN 4711882.", diagnosis=GIVEN["diagnosis"])]
    rule(try_stage("leaks", tmp_path, given), reason="leak-suspect")
    trial = try_stage("leaks", tmp_path, given)
    assert (trial.decisions[1].verdict, trial.decisions[1].reason) == ("undecided", "identifier")
    rule(trial, reason="identifier")
    end = try_stage("leaks", tmp_path, given).decisions[1]
    assert (end.verdict, end.reason, end.by) == ("in", "ruled-in", "person")


def test_other_grounds_for_the_same_reason_are_another_question(tmp_path: Path):
    given = draft(1, history="Mr. Schmidt came.", diagnosis="Lipoma")
    rule(try_stage("leaks", tmp_path, [given]), reason="identifier")
    more = given.with_question(history="Mr. Schmidt came with Mrs. Meyer.")
    assert try_stage("leaks", tmp_path, [more]).decisions[1].reason == "identifier"
    assert try_stage("leaks", tmp_path, [given]).decisions[1].verdict == "in"


def test_a_ruling_on_a_scan_skips_neither_licence_nor_second_patient(tmp_path: Path):
    dicom(tmp_path / "a.dcm", BurnedInAnnotation="YES")
    text = "Patient 1: pain. Patient 2: fever."
    table(tmp_path, [{"id": 7, "clinical_history": text, "final_diagnosis": "Lipoma", "images": "a.dcm"}])
    settings: dict[str, Any] = {"source": "raw.csv", "needs_licence": True}
    answers = {"burned-in-annotation": "", "no-licence": "CC0", "several-patients": ""}
    for reason, value in answers.items():
        rule(try_stage("ingest", tmp_path, None, **settings), case=7, reason=reason, value=value)
    kept = try_stage("ingest", tmp_path, None, **settings).kept[7]
    assert kept.notes.licence == "CC0" and len(kept.case.question.images) == 1


def test_a_licence_brings_no_dropped_image_back(tmp_path: Path):
    dicom(tmp_path / "a.dcm", BurnedInAnnotation="YES")
    dicom(tmp_path / "b.dcm", level=900)
    table(tmp_path, [{"id": 7, "clinical_history": "Pain.", "final_diagnosis": "Lipoma", "images": "a.dcm; b.dcm"}])
    settings: dict[str, Any] = {"source": "raw.csv", "needs_licence": True, "burned_in": "drop"}
    rule(try_stage("ingest", tmp_path, None, **settings), case=7, reason="no-licence", value="CC0")
    marks = try_stage("ingest", tmp_path, None, **settings).kept[7].notes.marks["ingest"]["images"]
    assert [one["origin"] for one in marks] == ["b.dcm"]


def test_an_image_that_does_not_open_cannot_be_let_in(tmp_path: Path):
    (tmp_path / "a.png").write_text("hello", encoding="utf-8")
    table(tmp_path, [{"id": 7, "clinical_history": "Pain.", "final_diagnosis": "Lipoma", "images": "a.png"}])
    rule(try_stage("ingest", tmp_path, None, source="raw.csv"), case=7, reason="image-unreadable")
    held = try_stage("ingest", tmp_path, None, source="raw.csv").decisions[7]
    assert (held.verdict, held.odd) == ("undecided", "an image that cannot be read cannot go in")


PLAN = """work = "work"
[ingest]
source = "raw.csv"
min_images = 0
[leaks]
identifiers = false
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan whose cases all wait for a licence, and after that for a name."""
    rows = [{"id": n, "clinical_history": f"Pain of Mr. Schmidt{n}.", "final_diagnosis": "Lipoma"} for n in range(1, 7)]
    table(tmp_path, rows)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    return tmp_path / "plan.toml"


def test_answers_given_while_a_build_runs_are_kept(plan: Path):
    work = plan.parent / "work"
    build(read_plan(plan))
    first, second, *_ = read_rows(work)

    def during(stage: str):
        fill(work, {1: {"ruling": "in", "value": "CC0"}})
        assert answer_row(work, second.question, Answer(ruling="in", value="CC BY 4.0"), who="cora")
        return lambda: None

    plan.write_text(PLAN.replace("min_images = 0", "min_images = 0\norigin = 'a clinic'"), encoding="utf-8")
    build(read_plan(plan), during)
    assert [(one.row.question, one.who) for one in read_journal(work)] == [
        (first.question, "the sheet"),
        (second.question, "cora"),
    ]
    rows = {row.question: row for row in read_rows(work)}
    assert rows[first.question].answer.value == "CC0" and rows[second.question].answer.value == "CC BY 4.0"
    build(read_plan(plan))
    assert licences(plan) == {1: "CC0", 2: "CC BY 4.0"}


def test_a_copy_saved_late_erases_nothing_and_a_cleared_cell_withdraws(plan: Path):
    work = plan.parent / "work"
    build(read_plan(plan))
    early = (work / "review.csv").read_bytes()
    fill(work, {1: {"ruling": "in", "value": "CC0"}})
    assert read_rows(work)[0].entry == 1
    (work / "review.csv").write_bytes(early)
    fill(work, {2: {"ruling": "out"}})
    build(read_plan(plan))
    assert licences(plan) == {1: "CC0"}
    assert [row.answer.ruling for row in read_rows(work) if row.stage == "ingest" and row.case in "12"] == ["in", "out"]
    fill(work, {1: {"ruling": "", "value": ""}})
    build(read_plan(plan))
    assert licences(plan) == {}
    assert [one.row.answer.ruling for one in read_journal(work)] == ["in", "out", ""]


def test_an_odd_cell_is_named_and_ends_nothing_else(plan: Path):
    work = plan.parent / "work"
    build(read_plan(plan))
    fill(work, {1: {"ruling": "perhaps"}, 2: {"ruling": "in"}, 3: {"ruling": "in", "value": "CC0"}, 4: {"value": "x"}})
    made = call_command(curate, ["build", plan])
    assert isinstance(made.exception, DataError) and made.exception.exit_code == 2, made.output
    lines = list(csv.DictReader(io.StringIO((work / "review.csv").read_text(encoding="utf-8-sig"))))
    place = {
        row["case"]: f"review.csv:{number}" for number, row in enumerate(lines, 2) if row["reason"] == "no-licence"
    }
    assert f"{place['1']}: ruling: case 1: 'perhaps' is not a valid answer" in made.stderr
    assert f"{place['2']}: value: case 2: no licence is named" in made.stderr
    assert f"{place['4']}: ruling: case 4: a value without a ruling" in made.stderr
    assert licences(plan) == {3: "CC0"}
    assert {row["case"]: row["ruling"] for row in lines if row["ruling"]} == {"1": "perhaps", "2": "in", "3": "in"}


def test_a_journal_cut_off_while_written_loses_no_acknowledged_line(plan: Path):
    work = plan.parent / "work"
    build(read_plan(plan))
    first, second, *_ = read_rows(work)
    assert answer_row(work, first.question, Answer(ruling="out"), who="cora")
    with (work / JOURNAL).open("ab") as stream:
        stream.write(b'{"at":"2026')
    assert [one.row.question for one in read_journal(work)] == [first.question]
    assert answer_row(work, second.question, Answer(ruling="out"), who="cora")
    assert [one.row.question for one in read_journal(work)] == [first.question, second.question]
    (work / JOURNAL).write_bytes(b"{}\n")
    with pytest.raises(DataError, match=r"rulings\.jsonl:1: not an answer"):
        read_journal(work)


def test_a_call_that_failed_may_be_done_without(tmp_path: Path):
    from judge_server import JudgeServer

    given = [draft(1, history="Mr. Schmidt came.", diagnosis="Lipoma")]
    with JudgeServer(lambda nonce, data, outside: "no JSON") as server:
        settings: dict[str, Any] = {"model": "server/m", "base_url": (server.url,)}
        rule(try_stage("leaks", tmp_path, given, **settings), reason="call-failed")
        assert try_stage("leaks", tmp_path, given, **settings).decisions[1].reason == "identifier"


def table(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with (folder / "raw.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def dicom(path: Path, *, level: int = 1000, **elements: object) -> None:
    pydicom = pytest.importorskip("pydicom")
    import numpy as np
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian

    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = dataset.SOPInstanceUID = "1.2.3"
    dataset.Rows = dataset.Columns = 16
    dataset.SamplesPerPixel, dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 1, 16, 16, 15
    dataset.PixelRepresentation, dataset.PhotometricInterpretation = 0, "MONOCHROME2"
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    dataset.PixelData = (np.arange(256) * level // 256).astype("<u2").tobytes()
    pydicom.dcmwrite(path, dataset, enforce_file_format=True)


def fill(work: Path, cells: dict[int, dict[str, str]]) -> None:
    """Fill in the licence rows of these cases, as a spreadsheet does."""
    path = work / "review.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    for row in rows:
        if row["reason"] == "no-licence":
            row |= cells.get(int(row["case"]), {})
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def licences(plan: Path) -> dict[int, str]:
    """The licence of each case that has one."""
    work = WorkFolder(plan.parent / "work")
    counted = [one for one in read_decisions(work.decision_file("ingest")) if one.verdict in ("in", "changed")]
    return {one.id: one.notes.licence for one in read_drafts(work.case_file("ingest"))} if counted else {}


def with_image(one: Draft, *, name: str = "a1", caption: str = "A nodule.") -> Draft:
    """The draft with one image."""
    image = Image(1, name, f"images/case00001/{name}.png", NoImages(Path()))
    shown = one.with_question(images=(image,)).with_reference(images=(ImageReference(caption, "", ""),))
    return Draft(msgspec.structs.replace(shown.case, image_count=1), shown.notes)


def asked_about() -> Draft:
    """A case that several stages ask about."""
    options = dict(zip("ABCDE", ("Dancing something", "Lipoma", "B b", "C c", "D d"), strict=True))
    given = draft(
        1,
        history="Mr. Schmidt came.",
        diagnosis="Dancing something",
        findings="A mass.",
        discussion="Cyst is common. Cysts are round.",
        options=options,
    )
    return with_image(given.with_notes(candidates=(*options.values(), "Cyst")))


# A change of the case, and the stages that look at what it changes.
CHANGES: dict[str, tuple[Callable[[Draft], Draft], set[str]]] = {
    "history": (lambda one: one.with_question(history="Mr. Schmidt came again."), {"leaks"}),
    "findings": (lambda one: one.with_reference(findings="A cold mass."), {"leaks", "icd"}),
    "discussion": (
        lambda one: one.with_reference(discussion="Cyst is rare. Cysts are round."),
        {"leaks", "discussion"},
    ),
    "caption": (lambda one: with_image(one, caption="Another nodule."), {"leaks", "modality"}),
    "image": (lambda one: with_image(one, name="b2"), {"leaks", "modality"}),
    "aliases": (
        lambda one: one.with_notes(aliases={"Dancing something": ("Waltz",)}),
        {"leaks", "icd", "discussion"},
    ),
    "letters": (
        lambda one: one.with_question(options=dict(zip("BACDE", one.case.question.options.values(), strict=True))),
        set(),
    ),
    "labels": (lambda one: one.with_reference(is_longitudinal=True, timepoint_count=2, interval_text="a year"), set()),
    "marks": (lambda one: one.with_mark("textonly", 1), set()),
    "split": (lambda one: one.with_notes(split="test", section="Chest"), set()),
}
ASKING: dict[str, dict[str, Any]] = {
    "leaks": {},
    "icd": {"uncoded": "hold"},
    "modality": {"unknown": "hold"},
    "discussion": {"max_removed": 0.1},
}


@pytest.mark.parametrize("stage", ASKING)
def test_a_ruling_lasts_until_what_its_stage_looked_at_changes(tmp_path: Path, stage: str):
    given, value = asked_about(), {"modality": "CT"}.get(stage, "")
    rule(try_stage(stage, tmp_path, [given], **ASKING[stage]), value=value)
    assert try_stage(stage, tmp_path, [given], **ASKING[stage]).kept
    asked_again = set()
    for name, (change, _) in CHANGES.items():
        trial = try_stage(stage, tmp_path, [change(given)], **ASKING[stage])
        asked_again |= {name} if trial.decisions[1].verdict == "undecided" else set()
    assert asked_again == {name for name, (_, stages) in CHANGES.items() if stage in stages}


def test_another_picture_under_the_name_of_a_burned_in_one_is_asked_about(tmp_path: Path):
    dicom(tmp_path / "a.dcm", BurnedInAnnotation="YES")
    table(tmp_path, [{"id": 7, "clinical_history": "Pain.", "final_diagnosis": "Lipoma", "images": "a.dcm"}])
    rule(try_stage("ingest", tmp_path, None, source="raw.csv"), case=7, reason="burned-in-annotation")
    assert try_stage("ingest", tmp_path, None, source="raw.csv").kept
    dicom(tmp_path / "a.dcm", level=77, BurnedInAnnotation="YES", WindowCenter=300, WindowWidth=900)
    assert try_stage("ingest", tmp_path, None, source="raw.csv").decisions[7].reason == "burned-in-annotation"
