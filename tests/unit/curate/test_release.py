"""A build that follows a release: published cases stay as they are, and what must change is listed."""

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Picture

from calling import call_command
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cli.curate import curate
from medthink.core.errors import DataError
from medthink.curate.build import BuildResult, build
from medthink.curate.plan import read_plan

PLAN = """work = "work"
seed = 3
review_sample = 0
[ingest]
source = "raw.jsonl"
licence = "CC0"
[options]
[leaks]
[balance]
[textonly]
guessers = []
[icd]
[split]
test_share = 0.25
[export]
"""


def case(number: int, **fields: Any) -> dict[str, Any]:
    """A raw case with a list of seven names of many lengths."""
    chance = np.random.default_rng(number)
    names = [f"X{'x' * int(chance.integers(4, 40))}itis {number} {letter}" for letter in "abcdefg"]
    return {
        "id": number,
        "clinical_history": " ".join(f"word{chance.integers(30)}" for _ in range(60)),
        "final_diagnosis": names[0],
        "differential_diagnosis": names,
        "imaging_findings": "A mass.",
        "discussion": "It is common.",
        "image1_path": f"{number}.png",
        "image1_caption": "A nodule.",
        "image1_modality": "CT",
    } | fields


def make(folder: Path, rows: list[dict[str, Any]], since: str = "", stages: str = "") -> BuildResult:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.toml").write_text(since + PLAN + stages, encoding="utf-8")
    (folder / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for row in rows:
        name = row["image1_path"]
        if not (folder / name).exists():
            noise = np.random.default_rng(int(name.split(".")[0])).integers(0, 255, (24, 24), dtype=np.uint8)
            Picture.fromarray(noise).save(folder / name)
    return build(read_plan(folder / "plan.toml"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    assert make(folder, [case(number) for number in range(1, 61)]).stopped_by is None
    shutil.copytree(folder / "work/benchmark", folder / "release")
    return folder / "release"


def pinned(path: Path) -> dict[int, tuple[Any, ...]]:
    return {one.id: (one.split, one.question.options, one.reference.answer) for one in Benchmark.open(path)}


def since(release: Path) -> str:
    return f"since = {json.dumps(str(release))}\n"


def test_without_a_release_one_more_case_moves_others(tmp_path: Path, release: Path) -> None:
    make(tmp_path, [case(number) for number in range(1, 62)])
    before, after = pinned(release), pinned(tmp_path / "work/benchmark")
    assert any(before[number] != after[number] for number in before.keys() & after.keys())


def test_published_cases_stay_when_cases_are_added_and_the_order_changes(tmp_path: Path, release: Path) -> None:
    rows = [case(number) for number in [*range(90, 60, -1), *range(60, 0, -1)]]
    end = make(tmp_path, rows, since(release))
    before, after = pinned(release), pinned(tmp_path / "work/benchmark")
    assert len(after) > len(before) > 40
    assert {number: after[number] for number in before if number in after} == before
    assert end.changes == ()
    # New cases even out what they can, and come into both splits.
    new = [after[number] for number in after.keys() - before.keys()]
    assert {one[0] for one in new} == {"train", "test"}
    letters = Counter(one[2] for one in new)
    assert max(letters.values()) - min(letters[letter] for letter in "ABCDE") <= 2


def test_what_must_change_is_listed_with_its_reason(tmp_path: Path, release: Path) -> None:
    published = {one.id: one for one in Benchmark.open(release)}
    gone, leaking, other_list, other_text, other_gold = sorted(published)[:5]
    rows = [case(number) for number in published if number != gone]
    found = {row["id"]: row for row in rows}
    found[leaking]["clinical_history"] += f" It was {found[leaking]['final_diagnosis']}."
    lost = next(
        text for text in published[other_list].question.options.values() if text != answer(published[other_list])
    )
    found[other_list]["differential_diagnosis"].remove(lost)
    found[other_text]["clinical_history"] += " Later edited."
    names = found[other_gold]["differential_diagnosis"]
    found[other_gold]["final_diagnosis"] = next(name for name in names if name != answer(published[other_gold]))
    end = make(tmp_path, rows, since(release))
    told = {(one.case, one.changed): one.why for one in end.changes}
    assert told.pop((gone, "left out")) == "it is not in the source"
    assert told.pop((leaking, "left out")).startswith("leaks: out: leak-L3")
    assert told.pop((other_list, "options")) == f"no distractor any more: {lost}"
    assert told.pop((other_text, "CLINICAL_HISTORY")) == "it differs in the source"
    assert told.pop((other_gold, "options")) == f"the right diagnosis was {answer(published[other_gold])}"
    assert told == {}
    before, after = pinned(release), pinned(tmp_path / "work/benchmark")
    assert all(before[number][0] == split for number, (split, *_) in after.items())
    assert set(before) - set(after) == {gone, leaking}
    assert (tmp_path / "work/changes.csv").read_text(encoding="utf-8-sig").startswith("case,changed,why\n")


def answer(case: Case) -> str:
    return case.reference.answer_text


def test_a_new_case_joins_the_split_of_its_published_likeness(tmp_path: Path, release: Path) -> None:
    published = {one.id: one for one in Benchmark.open(release)}
    of = {split: next(one for one in published.values() if one.split == split) for split in ("train", "test")}
    rows = [case(number) for number in published]
    likes = {200 + at: one.question.history for at, one in enumerate(of.values())}
    rows += [case(number, clinical_history=history) for number, history in likes.items()]
    rows.append(case(300, clinical_history=of["train"].question.history, image1_path=f"{of['test'].id}.png"))
    make(tmp_path, rows, since(release))
    after = pinned(tmp_path / "work/benchmark")
    assert [after[number][0] for number in likes if number in after] == [
        split for number, split in zip(likes, of, strict=True) if number in after
    ]
    assert 300 not in after and {number: after[number] for number in published} == pinned(release)


def test_ids_that_are_no_numbers_keep_the_published_number(tmp_path: Path) -> None:
    rows = [case(number, id=f"MPX{number}") for number in range(1, 31)]
    make(tmp_path / "a", rows)
    shutil.copytree(tmp_path / "a/work/benchmark", tmp_path / "release")
    shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=shutil.ignore_patterns("work"))
    end = make(tmp_path / "b", [case(99, id="MPX0"), *rows[5:], *rows[:5]], since(tmp_path / "release"))
    before, after = pinned(tmp_path / "release"), pinned(tmp_path / "b/work/benchmark")
    assert end.changes == () and {number: after[number] for number in before} == before


def test_another_case_under_a_published_number_is_refused(tmp_path: Path, release: Path) -> None:
    rows = [case(number + 1, id=number) for number in range(1, 60)]
    with pytest.raises(DataError, match="of the release has another history, other images and another diagnosis"):
        make(tmp_path, rows, since(release))


def test_the_command_takes_a_release_and_refuses_its_own_output(tmp_path: Path, release: Path) -> None:
    make(tmp_path, [case(number) for number in range(2, 62)])
    made = call_command(curate, ["build", tmp_path / "plan.toml", "--since", release])
    assert made.exit_code == 0, made.output
    assert "1 published case changed" in made.output and "case 1: left out: it is not in the source" in made.output
    made = call_command(curate, ["build", tmp_path / "plan.toml", "--since", tmp_path / "work/benchmark"])
    assert isinstance(made.exception, DataError) and "copy the release elsewhere" in str(made.exception)


def digests(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("lost", [".", "test.jsonl", "README.md", "images", "an image", "a word"])
def test_a_benchmark_that_is_not_there_as_written_is_written_again(tmp_path: Path, lost: str) -> None:
    rows = [case(number) for number in range(1, 13)]
    make(tmp_path, rows)
    out = tmp_path / "work/benchmark"
    before = digests(out)
    path = next(out.rglob("*.png")) if lost == "an image" else out / ("test.jsonl" if lost == "a word" else lost)
    if lost == "a word":
        path.write_text(path.read_text(encoding="utf-8").replace("A mass.", "No mass."), encoding="utf-8")
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    make(tmp_path, rows)
    assert digests(out) == before


def test_an_image_that_changed_or_was_lost_is_read_again(tmp_path: Path) -> None:
    rows = [case(number) for number in range(1, 13)]
    make(tmp_path, rows)
    before = digests(tmp_path / "work/benchmark")
    shutil.rmtree(tmp_path / "work/cases/images")
    shutil.rmtree(tmp_path / "work/benchmark")
    make(tmp_path, rows)
    assert digests(tmp_path / "work/benchmark") == before
    was = (tmp_path / "3.png").stat()
    other = Picture.fromarray(np.random.default_rng(77).integers(0, 255, (24, 24), dtype=np.uint8))
    other.save(tmp_path / "3.png")
    os.utime(tmp_path / "3.png", ns=(was.st_atime_ns, was.st_mtime_ns))
    make(tmp_path, rows)
    (image,) = next(one for one in Benchmark.open(tmp_path / "work/benchmark") if one.id == 3).question.images
    assert np.array_equal(np.asarray(image.open()), np.asarray(other))


SIX = (
    (
        "Knee pain for weeks.",
        "Giant cell tumour of bone",
        "Aneurysmal bone cyst; Chondroblastoma; Osteosarcoma; Lipoma",
    ),
    ("Flank pain.", "Renal cell carcinoma", "Oncocytoma; Angiomyolipoma; Urothelial carcinoma; Lymphoma"),
    ("Headache and fever.", "Brain abscess", "Glioblastoma; Metastasis; Lymphoma; Tuberculoma"),
    ("A smoker with cough.", "Aspergilloma", "Tuberculosis; Lung abscess; Metastasis; Lung cancer"),
    ("A swollen abdomen.", "Neuroblastoma", "Wilms tumour; Hepatoblastoma; Lymphoma; Rhabdomyosarcoma"),
    ("Upper abdominal pain.", "Haemangioma", "Hepatocellular adenoma; Cyst; Hepatocellular carcinoma; Metastasis"),
)


def test_six_cases_of_one_s_own_are_six_cases_of_a_benchmark(tmp_path: Path) -> None:
    blank = {"image1_caption": "", "image1_modality": ""}
    rows = [
        case(at, clinical_history=history, final_diagnosis=gold, differential_diagnosis=f"{gold}; {others}") | blank
        for at, (history, gold, others) in enumerate(SIX, start=1)
    ]
    end = make(tmp_path, rows, stages="[modality]\n[timeline]\n[discussion]\n")
    benchmark = Benchmark.open(tmp_path / "work/benchmark")
    assert end.stopped_by is None and len(benchmark) == 6 and {one.modalities for one in benchmark} == {("unknown",)}
    limits = [limit for stage in end.stages for limit in stage.not_covered]
    assert "lengths of the right options: 6 cases, and only 40 or more are balanced" in limits
