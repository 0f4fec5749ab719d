"""Split and export: near-duplicates together, labels in their shares, a benchmark that passes the check, its card."""

import io
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture

from drafts import draft, try_stage, write_drafts
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Image, ImageReference
from medthink.cases.check import check_benchmark
from medthink.cases.images.stores import FolderImages
from medthink.core.errors import DataError, UsageError
from medthink.curate.build import open_stage
from medthink.curate.draft import Draft
from medthink.curate.plan import WorkFolder
from medthink.curate.settings import read_stage_settings
from medthink.curate.stages.balance import answer_length_rank
from medthink.curate.stages.split import DuplicateGroups, ImageHashes, LabelledGroup, TextSketches, stratify

WORDS = [
    "pain",
    "fever",
    "cough",
    "mass",
    "left",
    "right",
    "leg",
    "arm",
    "head",
    "back",
    "week",
    "month",
    "year",
    "old",
    "known",
    "never",
    "since",
    "after",
    "before",
    "some",
]


def _text(seed, length=80):
    chance = np.random.default_rng(seed)
    return " ".join(chance.choice(WORDS, length))


def _case(number, **fields):
    """A case whose right option has a length rank of its own."""
    rank = number % 5
    names = [f"{'x' * (10 + 5 * place)} {number}" for place in range(5)]
    gold = names.pop(4 - rank)
    letter = "ABCDE"[number // 5 % 5]
    names.insert("ABCDE".index(letter), gold)
    options = dict(zip("ABCDE", names, strict=True))
    made = draft(number, history=_text(number), diagnosis=gold, options=options, licence="CC0", source="here", **fields)
    return made.with_reference(icd_chapter=f"Chapter {'I' if number % 4 else 'II'} - x")


def test_every_split_has_its_share_of_every_label_and_letters_are_even(tmp_path):
    trial = try_stage("split", tmp_path, [_case(n) for n in range(1, 201)], test_share=0.25, validation_share=0.1)
    kept = list(trial.kept.values())
    sizes = Counter(one.notes.split for one in kept)
    assert abs(sizes["test"] - 50) <= 2 and abs(sizes["validation"] - 20) <= 2 and len(kept) == 200
    rare = Counter(one.notes.split for one in kept if one.case.reference.icd_chapter.startswith("Chapter II "))
    assert abs(rare["test"] - 12.5) <= 2
    for split in sizes:
        own = [one for one in kept if one.notes.split == split]
        letters, ranks = Counter(one.case.reference.answer for one in own), Counter(map(answer_length_rank, own))
        assert max(letters.values()) - min(letters[x] for x in "ABCDE") <= 1
        assert max(ranks.values()) - min(ranks[x] for x in range(5)) <= 4
    letters = Counter(one.case.reference.answer for one in kept)
    assert max(letters.values()) - min(letters.values()) <= 1
    again = try_stage("split", tmp_path / "b", [_case(n) for n in range(1, 201)], test_share=0.25, validation_share=0.1)
    assert {n: one.notes.split for n, one in again.kept.items()} == {one.id: one.notes.split for one in kept}


def test_near_duplicates_stay_together(tmp_path):
    cases = [_case(n) for n in range(1, 41)]
    copies = {2: 1, 12: 11, 22: 21}
    cases = [
        one.with_question(history=_text(copies[one.id]) + " with a new end") if one.id in copies else one
        for one in cases
    ]
    cases = [one.with_notes(group="family") if one.id in (31, 35) else one for one in cases]
    kept = try_stage("split", tmp_path, cases, test_share=0.5, max_rank_share=1.0).kept
    for one, other in [*copies.items(), (31, 35)]:
        assert kept[one].notes.split == kept[other].notes.split
        assert kept[one].notes.group == kept[other].notes.group == f"like case {min(one, other)}"
    assert kept[3].notes.group == ""


def test_ranks_that_later_stages_tilted_are_levelled_again(tmp_path):
    cases = [_case(n) for n in range(1, 101) if n % 5 or n < 60]
    trial = try_stage("split", tmp_path, cases, max_rank_share=0.21)
    ranks = Counter(map(answer_length_rank, trial.kept.values()))
    assert max(ranks.values()) <= 0.21 * len(trial.kept) + 1
    assert trial.end.counts.reasons["out"].keys() == {"length-rank"}


def test_shares_beyond_the_whole_are_refused(tmp_path):
    with pytest.raises(UsageError, match="add up to more than 1"):
        try_stage("split", tmp_path, [_case(1)], test_share=0.8, validation_share=0.5)


def test_texts_that_share_most_sequences_are_found_and_others_are_not():
    sketches = TextSketches()
    for number in range(200):
        assert sketches.add(number, _text(number)) == []
    changed = _text(7).replace(" pain ", " ache ", 1)
    assert sketches.add(1000, changed) == [7]
    assert sketches.add(1001, _text(7)) == [7, 1000] or sketches.add(1001, _text(7))[0] == 7
    assert sketches.add(1002, "") == [] and sketches.add(1003, "short text") == []
    assert sketches.add(1004, "Short text.") == [1003]


def _store(folder, pictures):
    (folder / "images").mkdir(parents=True)
    store = FolderImages(folder)
    for name, picture in pictures.items():
        picture.save(folder / f"images/{name}.png")
    return [Image(1, name, f"images/{name}.png", store) for name in pictures]


def _picture(seed):
    small = np.random.default_rng(seed).integers(0, 255, (6, 6), dtype=np.uint8)
    return Picture.fromarray(small).resize((96, 96), Picture.Resampling.BICUBIC)


def test_pictures_that_look_the_same_join_their_cases(tmp_path):
    stream = io.BytesIO()
    _picture(1).save(stream, "JPEG", quality=70)
    images = _store(tmp_path, {"a": _picture(1), "b": _picture(2), "c": Picture.open(stream), "d": _picture(3)})
    looks = ImageHashes()
    for number, image in enumerate(images):
        looks.add(number, image)
    assert list(looks.pairs()) == [(0, 2)]


def test_groups_join_and_find():
    groups = DuplicateGroups()
    groups.join([1, 2])
    groups.join([3, 4])
    groups.join([2, 3])
    assert len({groups.find(one) for one in (1, 2, 3, 4)}) == 1 and groups.find(5) == 5


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sets(st.sampled_from("abc"))), min_size=1, max_size=60), st.integers(0, 3)
)
def test_every_group_gets_a_split(sizes, seed):
    groups = [
        LabelledGroup(number, size, Counter(dict.fromkeys(labels, size))) for number, (size, labels) in enumerate(sizes)
    ]
    found = stratify(groups, {"train": 0.8, "test": 0.2}, seed)
    assert found.keys() == {group.name for group in groups} and set(found.values()) <= {"train", "test"}


def _with_images(one: Draft, folder) -> Draft:
    store = FolderImages(folder)
    paths = []
    for slot in (1, 2):
        name = f"i{one.id}x{slot}"
        path = folder / f"images/case{one.id:05d}/{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        _picture(one.id * 10 + slot).save(path)
        paths.append(Image(slot, name, f"images/case{one.id:05d}/{name}.png", store))
    known = (ImageReference("first", "CT", ""), ImageReference("second", "MRI", ""))
    case = one.with_question(images=tuple(paths)).with_reference(images=known, findings="f", discussion="d").case
    import msgspec

    return Draft(msgspec.structs.replace(case, image_count=2), one.notes)


def _export(tmp_path, cases, **fields):
    work = WorkFolder(tmp_path / "work")
    drafts = [_with_images(one.with_notes(split="test" if one.id % 4 == 0 else "train"), work.cases) for one in cases]
    return try_stage("export", tmp_path, drafts, **fields)


def test_what_is_exported_passes_the_check_and_tells_of_itself(tmp_path):
    cases = [_case(n, aliases={}, marks={"leaks": {"captions": [1]}}) for n in range(1, 9)]
    _export(tmp_path, cases, title="Trial")
    out = tmp_path / "work/benchmark"
    benchmark = Benchmark.open(out)
    assert benchmark.splits == ("train", "test") and len(benchmark) == 8
    assert not check_benchmark(benchmark, images=True).errors
    one = next(iter(benchmark))
    assert one.extra["licence"] == "CC0" and "curation" not in one.extra
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "# Trial" in card and "| CC0 | 8 |" in card and "In 8 cases a caption names the diagnosis" in card
    assert benchmark.fingerprint() in card
    assert str(tmp_path) not in card + (out / "curation.json").read_text(encoding="utf-8")


def test_a_second_export_takes_the_place_of_the_first_and_of_nothing_else(tmp_path):
    cases = [_case(n) for n in range(1, 6)]
    _export(tmp_path, cases)
    _export(tmp_path, cases[:3])
    assert len(Benchmark.open(tmp_path / "work/benchmark")) == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match="already exists and contains other files"):
        _export(tmp_path, cases, out="mine")
    assert (tmp_path / "mine/thesis.txt").exists()


def test_a_benchmark_with_errors_is_written_and_declined(tmp_path):
    work = WorkFolder(tmp_path / "work")
    source = write_drafts(work.cases / "given.jsonl", [_case(1)])
    stage = open_stage(
        "export", read_stage_settings("export", {}), work=work, source=source, plan_folder=tmp_path, seed=0
    )
    from medthink.curate.build import run_stage
    from medthink.curate.rulings import Rulings

    end = run_stage(stage, work, Rulings())
    assert "has errors" in str(end.stopped_by)


@pytest.mark.parametrize("stage", ["split", "textonly"])
@pytest.mark.parametrize("letters", ["ABCD", "ABCDEF"])
def test_other_than_five_options_are_refused_with_the_case(tmp_path, stage, letters):
    options = {letter: f"Disease {letter}" for letter in letters}
    given = [_case(1), draft(2, history="Pain.", diagnosis="Disease A", options=options)]
    with pytest.raises(DataError, match=f"case 2 has {len(letters)} options, not the five from A to E"):
        try_stage(stage, tmp_path, given)
