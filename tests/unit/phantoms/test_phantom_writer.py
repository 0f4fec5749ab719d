"""A phantom benchmark on disk: the same to the byte, shaped like the real one, clean unless asked otherwise."""

import json
import os
import re
from statistics import mean

import pytest

from calling import call_command
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import MAX_IMAGES
from medthink.cases.check import DEFECTS, check_benchmark
from medthink.cases.files.rows import row_from_case
from medthink.cli.data.data import data_synth
from medthink.core.errors import DataError, UsageError
from medthink.phantoms import painters, writer
from medthink.phantoms.atlas import families
from medthink.phantoms.expert_texts import SECTIONS
from medthink.phantoms.painters.scene import ImageSpec
from medthink.phantoms.plan import image_count, plan_case
from medthink.phantoms.writer import make_phantom_row, numbers_of_test, write_benchmark


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth") / "bench"
    return folder, write_benchmark(folder, cases=20, seed=3, processes=1)


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_processes(phantom, tmp_path):
    folder, counts = phantom
    assert write_benchmark(tmp_path / "again", cases=20, seed=3, processes=2) == counts
    assert contents(tmp_path / "again") == contents(folder)


def test_another_seed_gives_another_benchmark():
    assert make_phantom_row(1, 1, shortcut=False) != make_phantom_row(2, 1, shortcut=False)


def test_a_case_does_not_depend_on_how_many_there_are(phantom, tmp_path):
    write_benchmark(tmp_path / "fewer", cases=4, seed=3, processes=1)
    fewer, more = contents(tmp_path / "fewer"), contents(phantom[0])
    images = [name for name in fewer if name.startswith("images/")]
    assert images and all(fewer[name] == more[name] for name in images)


def test_it_reads_back_as_it_was_written(phantom):
    folder, counts = phantom
    benchmark = Benchmark.open(folder)
    cases = list(benchmark)
    assert (len(cases), sum(case.image_count for case in cases)) == (20, counts.images)
    written = [
        json.loads(line) for split in ("train", "test") for line in (folder / f"{split}.jsonl").read_text().splitlines()
    ]
    assert [row_from_case(case) for case in cases] == written
    assert len({image.id for case in cases for image in case.question.images}) == counts.images


def test_the_check_finds_nothing(phantom):
    report = check_benchmark(Benchmark.open(phantom[0]), images=True)
    assert report.problems == ()


def test_splits_have_the_real_sizes():
    assert len(numbers_of_test(8067, 1)) == 720
    assert len(numbers_of_test(60, 1)) == 15
    assert len(numbers_of_test(2, 1)) == 1
    test = numbers_of_test(60, 1)
    letters = [plan_case(1, number).answer for number in test]
    assert all(letters.count(letter) == 3 for letter in range(5))


def test_images_per_case_follow_the_real_benchmark():
    test = numbers_of_test(8067, 5)
    counts = {number: image_count(5, number) for number in range(1, 8068)}
    assert mean(counts.values()) == pytest.approx(6.6, abs=0.3)
    assert mean(counts[number] for number in test) == pytest.approx(8.1, abs=0.5)
    assert (min(counts.values()), max(counts.values())) == (3, MAX_IMAGES)


def test_modalities_and_timelines_follow_the_real_benchmark():
    plans = [plan_case(5, number) for number in range(1, 1501)]
    assert mean(len({shot.view.modality for shot in plan.shots}) for plan in plans) == pytest.approx(2.3, abs=0.15)
    assert mean(bool(plan.intervals) for plan in plans) == pytest.approx(0.304, abs=0.04)
    for plan in plans:
        assert {shot.timepoint for shot in plan.shots} == set(range(len(plan.intervals) + 1))
        assert {shot.axis for shot in plan.shots} >= {0, 1, 2}


def test_texts_are_true_to_the_plan():
    for number in range(1, 60):
        row, plan = make_phantom_row(9, number, shortcut=False), plan_case(9, number)
        for slot, shot in enumerate(plan.shots, start=1):
            caption = row[f"image_{slot:02d}_caption"]
            phrases = shot.view.signs[shot.sign] if shot.sign else shot.view.normal
            values = {"side": plan.side, "mm": round(shot.view.mm * shot.size)}
            assert any(phrase.format(**values) in caption for phrase in phrases)
            assert plan.disease.name.lower() not in caption.lower()
            assert caption.startswith("Follow-up") == (shot.timepoint > 0)
        titles = [part.partition("\n")[0] for part in row["discussion"].split("\n\n")]
        assert tuple(titles) == SECTIONS
        assert plan.disease.name in row["discussion"]
        assert "{" not in json.dumps([row["CLINICAL_HISTORY"], row["IMAGING_FINDINGS"], row["discussion"]])


def test_the_findings_name_every_sign_and_the_discussion_rules_out_every_other_option():
    for number in range(1, 60):
        row, plan = make_phantom_row(9, number, shortcut=False), plan_case(9, number)
        for at in range(3):
            shown = [shot for shot in plan.shots if shot.axis == at]
            assert any(
                phrase.format(side=plan.side, mm=round(shot.view.mm * shot.size)) in row["IMAGING_FINDINGS"]
                for shot in shown
                for phrase in shot.view.signs[shot.sign]
            )
        for other in (disease for disease in plan.options if disease is not plan.disease):
            sentence = next(text for text in row["discussion"].split(". ") if text.startswith(other.name))
            for axis, sign, own in zip(families()[plan.family].axes, other.profile, plan.disease.profile, strict=True):
                assert (axis.values[sign] in sentence) == (sign != own)


def test_a_follow_up_comes_later_and_the_sign_has_the_size_that_the_words_say():
    words = {"regressing": ("smaller", "decreased"), "stable": ("unchanged", "without relevant change"),
             "progressing": ("larger", "increased")}  # fmt: skip
    ends = {"regressing": "had regressed.", "stable": "were unchanged.", "progressing": "had progressed."}
    growth = {"regressing": (0.7, 0.9), "stable": (0.9, 1.1), "progressing": (1.1, 1.4)}
    order = ("2 weeks", "6 weeks", "3 months", "6 months", "1 year", "18 months", "2 years", "3 years", "5 years")
    plans = [plan for plan in (plan_case(9, number) for number in range(1, 200)) if plan.intervals]
    assert {plan.course for plan in plans} == set(words)
    for plan in plans:
        row, known = make_phantom_row(9, plan.number, shortcut=False), "unknown" not in plan.intervals
        assert not known or list(plan.intervals) == sorted(plan.intervals, key=order.index)
        for slot, shot in enumerate(plan.shots, start=1):
            caption = row[f"image_{slot:02d}_caption"]
            after = f"after {plan.intervals[shot.timepoint - 1]}." if known else "examination."
            assert caption.startswith(f"Follow-up {after}") == (shot.timepoint > 0)
            changed = any(word in caption for word in words[plan.course])
            assert changed or not (shot.timepoint and shot.sign)
        assert row["IMAGING_FINDINGS"].endswith(ends[plan.course])
        low, high = growth[plan.course]
        assert low < plan.shots[-1].size / plan.shots[0].size < high


def test_patients_are_of_an_age_and_sex_that_their_family_has():
    named = {"man": r"\b(man|boy)\b", "woman": r"\b(woman|girl)\b"}
    for number in range(1, 300):
        family, history = (
            families()[plan_case(9, number).family],
            make_phantom_row(9, number, False)["CLINICAL_HISTORY"],
        )
        youngest, oldest = family.ages
        assert youngest <= (age := int(re.search(r"(\d+)-year-old", history)[1])) <= oldest
        assert next(sex for sex, words in named.items() if re.search(words, history)) in family.sexes
        assert bool(re.search(r"\b(boy|girl)\b", history)) == (age < 18)


def test_what_is_painted_is_what_was_planned(tmp_path, monkeypatch):
    painted, told = [], []
    monkeypatch.setattr(painters, "paint_jpeg", lambda painter, look, _: painted.append((painter, look)) or b"")
    write_benchmark(tmp_path / "bench", cases=8, seed=3, processes=1, progress=told.append)
    assert told == list(range(1, 9))
    sides = {"left": 1, "right": -1}  # the patient's left lies on the picture's right
    plans = [plan_case(3, number) for number in range(1, 9)]
    assert {plan.side for plan in plans} == set(sides)
    assert painted == [
        (shot.view.painter, ImageSpec(shot.sign, sides[plan.side], shot.size)) for plan in plans for shot in plan.shots
    ]


def test_every_defect_that_the_check_knows_is_planted_and_found(tmp_path):
    write_benchmark(tmp_path / "bad", cases=80, seed=4, defects=True)
    planted = {tuple(defect.values()) for defect in json.loads((tmp_path / "bad/planted.json").read_bytes())}
    report = check_benchmark(Benchmark.open(tmp_path / "bad"), images=True)
    assert {(found.code, found.split, found.case, found.field) for found in report.problems} == planted
    assert {code for code, *_ in planted} == set(DEFECTS) - {"row-unreadable", "image-unreadable", "forms-differ"}


def test_shortcuts_are_noticed(tmp_path):
    write_benchmark(tmp_path / "leaky", cases=24, seed=4, shortcut=True)
    report = check_benchmark(Benchmark.open(tmp_path / "leaky"))
    assert {found.code for found in report.problems} == {"longest-option-right", "answer-in-history"}
    assert "shortcut: True · defects: False" in (tmp_path / "leaky/README.md").read_text()


def test_shortcuts_have_the_shares_that_are_promised():
    pairs = [
        (make_phantom_row(4, number, shortcut=False), make_phantom_row(4, number, shortcut=True))
        for number in range(1, 601)
    ]
    assert mean(fair["options"] != leaky["options"] for fair, leaky in pairs) == pytest.approx(0.7, abs=0.06)
    told = [(fair, leaky) for fair, leaky in pairs if fair["CLINICAL_HISTORY"] != leaky["CLINICAL_HISTORY"]]
    assert len(told) / len(pairs) == pytest.approx(0.25, abs=0.06)
    assert all(fair["correct_answer_text"] in leaky["CLINICAL_HISTORY"] for fair, leaky in told)


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(DataError, match="the folder is not empty"):
        write_benchmark(tmp_path, cases=5, seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("cases", "defects"), [(1, False), (100_000, False), (59, True)])
def test_a_number_of_cases_that_cannot_be_is_refused(tmp_path, cases, defects):
    with pytest.raises(UsageError, match="cases"):
        write_benchmark(tmp_path / "out", cases=cases, seed=1, defects=defects)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("cases", "processes"), [(4, 1), (18, 2)])
def test_a_failure_leaves_nothing_behind(tmp_path, cases, processes):
    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_benchmark(tmp_path / "out", cases=cases, seed=1, processes=processes, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_dies_is_said(tmp_path):
    with pytest.raises(DataError, match="a worker process died"):
        list(writer._rows_made(tmp_path, 40, os._exit, 2))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_benchmark(tmp_path / "file" / "bench", cases=4, seed=1)


def test_the_command_says_what_it_made(tmp_path):
    result = call_command(data_synth, ["-o", tmp_path / "bench", "--count", 4, "--seed", 2])
    assert result.exit_code == 0
    assert "4 cases (3 train, 1 test)" in result.output
    assert (tmp_path / "bench/README.md").is_file()
