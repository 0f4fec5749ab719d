"""Statistics: counted by hand on a few cases, in one pass, and drawn the same way twice."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from medthink.cases import statistics_figure
from medthink.cases.benchmark import Benchmark
from medthink.cases.statistics import UNKNOWN_CHAPTER, Statistics, compute_statistics
from medthink.cases.statistics_figure import draw_statistics
from medthink.cli.command import run_command
from medthink.core.errors import DataError


@pytest.fixture
def statistics(tmp_path: Path, row_maker: Callable[..., Any], folder_maker: Callable[..., Path]) -> Statistics:
    train = [row_maker(1, images=1), row_maker(2, images=3), row_maker(3, images=8, correct_answer="E")]
    train[2]["options"] |= {"E": "The longest of them all, by far"}
    train[0]["ICD Chapter"] = "no chapter"
    test = [row_maker(4, images=2)]
    test[0]["image_02_modality"] = "CT"
    return compute_statistics(Benchmark.open(folder_maker(tmp_path / "b", {"train": train, "test": test})))


def test_scale_and_means(statistics: Statistics) -> None:
    train, test, overall = statistics.splits["train"], statistics.splits["test"], statistics.overall
    assert (train.cases, test.cases, overall.cases) == (3, 1, 4)
    assert (train.images, test.images, overall.images) == (12, 2, 14)
    assert (train.images_per_case_mean, test.images_per_case_mean, overall.images_per_case_mean) == (4, 2, 3.5)
    assert (train.modalities_per_case_mean, test.modalities_per_case_mean) == (5 / 3, 1)
    assert (train.longitudinal_share, test.longitudinal_share, overall.longitudinal_share) == (1 / 3, 1, 0.5)
    assert list(statistics.columns) == ["train", "test", "all"]


def test_distributions(statistics: Statistics) -> None:
    overall = statistics.overall
    assert overall.images_per_case == {1: 1, 2: 1, 3: 1, 8: 1}
    assert overall.modalities_per_case == {1: 2, 2: 2}
    assert overall.timepoints == {1: 2, 2: 2}
    assert overall.letters == {"B": 3, "E": 1}
    assert overall.icd_chapters == {"II": 3, UNKNOWN_CHAPTER: 1}
    assert overall.modality_images == {"CT": 5, "MRI": 9}
    assert overall.modality_cases == {"CT": 4, "MRI": 2}
    assert overall.sub_modality_images == {
        "CT": {"HRCT / Thin-slice CT": 5},
        "MRI": {"HRCT / Thin-slice CT": 9},
    }
    assert overall.sub_modalities == 1


def test_option_lengths_and_the_longest(statistics: Statistics) -> None:
    overall = statistics.overall
    assert overall.correct_option_lengths == {len("Diagnosis B of 1"): 3, 31: 1}
    assert sum(overall.wrong_option_lengths.values()) == 16
    assert (overall.correct_longest, overall.correct_longest_alone) == (4, 1)


def test_one_character_short_of_the_longest_is_not_the_longest(
    tmp_path: Path, row_maker: Any, folder_maker: Any
) -> None:
    row = row_maker(1, options={"A": "xxxx", "B": "xxx"}, correct_answer="B")
    overall = compute_statistics(Benchmark.open(folder_maker(tmp_path / "b", {"test": [row]}))).overall
    assert (overall.correct_longest, overall.correct_option_lengths, overall.wrong_option_lengths) == (
        0,
        {3: 1},
        {4: 1},
    )


def test_all_splits_count_and_every_name_stands_in_its_usual_place(
    tmp_path: Path, row_maker: Any, folder_maker: Any
) -> None:
    chapters = {
        "train": ("E", "Chapter V - Mental and behavioural disorders"),
        "validation": ("A", "?"),
        "test": ("C", "Chapter IX - Diseases of the circulatory system"),
    }
    splits = {}
    for number, (split, (letter, chapter)) in enumerate(chapters.items(), start=1):
        row = row_maker(number, images=6 - number, correct_answer=letter, options={letter: "x" * (9 - number)})
        row |= {"ICD Chapter": chapter, "image_01_modality": "Ultrasound", "image_02_modality": "Another"}
        splits[split] = [row]
    splits["test"][0]["image_03_sub_modality"] = "A rare one"
    seen: list[int] = []
    statistics = compute_statistics(
        Benchmark.open(folder_maker(tmp_path / "b", splits)), advance=lambda: seen.append(1)
    )
    overall = statistics.overall
    assert (overall.cases, overall.images, len(seen)) == (3, 12, 3)
    assert list(statistics.columns) == ["train", "validation", "test", "all"]
    assert list(overall.images_per_case) == [3, 4, 5]
    assert list(overall.letters) == ["A", "C", "E"]
    assert list(overall.icd_chapters) == ["V", "IX", UNKNOWN_CHAPTER]
    assert list(overall.correct_option_lengths) == [6, 7, 8]
    assert list(overall.modality_images) == list(overall.sub_modality_images) == ["MRI", "Ultrasound", "Another"]
    assert list(overall.sub_modality_images["MRI"].items()) == [("HRCT / Thin-slice CT", 5), ("A rare one", 1)]


def test_no_case_is_an_error() -> None:
    with pytest.raises(DataError, match="no case"):
        compute_statistics([])


def test_the_figure_is_the_same_every_time_and_names_its_panels(statistics: Statistics, tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    draw_statistics(statistics, first)
    draw_statistics(statistics, second)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text()
    for words in ("train (3 cases)", "Images per case", "Timepoints", "Modality", "ICD-10 chapter", "Option length"):
        assert words in text
    assert text.startswith("<?xml") and "<dc:date>" not in text


def test_the_panels_show_the_numbers(statistics: Statistics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda drawn, *_, **__: kept.append(drawn))
    draw_statistics(statistics, tmp_path / "x.svg")
    monkeypatch.setattr(statistics_figure, "_CHAPTERS_SHOWN", 1)
    draw_statistics(statistics, tmp_path / "x.svg")
    images, timepoints, modalities, chapters, letters, lengths = kept[0].axes
    heights = [round(bar.get_height(), 1) for bar in letters.patches]
    assert heights == [66.7, 33.3, 100, 0]  # B and E of train, then of test
    assert [round(bar.get_height(), 1) for bar in timepoints.patches] == [66.7, 33.3, 0, 100]
    assert [round(bar.get_width(), 1) for bar in modalities.patches] == [25, 75, 100, 0]
    assert [label.get_text() for label in modalities.get_yticklabels()] == ["CT", "MRI"]
    for axes, last in ((chapters, "unknown"), (kept[1].axes[3], "1 other chapter")):
        assert [round(bar.get_width(), 1) for bar in axes.patches] == [33.3, 66.7, 0, 100]
        assert [label.get_text() for label in axes.get_yticklabels()] == [last, "Neoplasms (II)"]
    # Train above test wherever bars lie, left of it wherever they stand.
    assert chapters.patches[0].get_y() > chapters.patches[2].get_y()
    assert letters.patches[0].get_x() < letters.patches[2].get_x()
    train, test, *means = images.lines
    assert [round(y, 1) for y in train.get_ydata()] == [0, 33.3, 0, 33.3, 0, 0, 0, 0, 33.3, 0]
    assert [list(line.get_xdata()) for line in means] == [[4, 4], [2, 2]]
    assert (test.get_label(), list(test.get_ydata()).index(100)) == ("test (1 cases)", 2)
    assert [list(line.get_ydata()) for line in lengths.lines] == [[0, 75, 100], [0, 100]]


def test_a_pdf_carries_no_date(statistics: Statistics, tmp_path: Path) -> None:
    draw_statistics(statistics, tmp_path / "x.pdf")
    data = (tmp_path / "x.pdf").read_bytes()
    assert data.startswith(b"%PDF-") and b"CreationDate" not in data


def test_one_split_needs_no_column_for_all(tmp_path: Path, row_maker: Any, folder_maker: Any) -> None:
    only = compute_statistics(Benchmark.open(folder_maker(tmp_path / "b", {"test": [row_maker(1)]})))
    assert list(only.columns) == ["test"]
    draw_statistics(only, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_longest_options_are_in_the_table_too(
    tmp_path: Path, row_maker: Any, folder_maker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row = row_maker(1, options={"A": "x" * 20_000, "B": "b"}, correct_answer="A")
    assert run_command(["data", "stats", str(folder_maker(tmp_path / "b", {"test": [row]}))]) == 0
    assert "80 and more  1 (100.0 %)" in capsys.readouterr().out


def test_the_table_says_the_numbers(
    tmp_path: Path, row_maker: Any, folder_maker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"A": "x" * 29, "B": "y" * 30, "C": "z" * 9}
    rows = [row_maker(1, images=13, options=options), row_maker(2, images=3, options=options, correct_answer="A")]
    rows[0] |= {"ICD Chapter": "?", "image_01_modality": "", "image_01_sub_modality": ""}
    assert run_command(["data", "stats", str(folder_maker(tmp_path / "b", {"test": rows}))]) == 0
    lines = [re.split(r"  +", line.strip(" █")) for line in capsys.readouterr().out.splitlines()]
    for line in (
        ["Cases", "2"], ["Images", "16"], ["Images per case, mean", "8.00"], ["Images per case, maximum", "13"],
        ["Modalities per case, mean", "1.50"], ["Level-1 modalities", "2"], ["Level-2 modalities", "1"],
        ["ICD-10 chapters", "1"], ["Longitudinal cases", "1 (50.0 %)"], ["Right option is the longest", "1 (50.0 %)"],
        ["2–4", "1 (50.0 %)"], ["13–20", "1 (50.0 %)"], ["20–29", "1 (50.0 %)"], ["30–39", "1 (50.0 %)"],
        ["0–9", "2 (50.0 %)"], ["20–29", "1 (25.0 %)"], ["30–39", "1 (25.0 %)"],
    ):  # fmt: skip
        assert line in lines


def test_shares_are_of_all_images_whatever_their_modality_is_called(
    tmp_path: Path, row_maker: Any, folder_maker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row = row_maker(1, images=4, image_01_modality=" CT", image_02_modality="")
    assert run_command(["data", "stats", str(folder_maker(tmp_path / "b", {"test": [row]}))]) == 0
    table = capsys.readouterr().out.split("Modalities (images)")[1].split("Answer letters")[0]
    shares = re.findall(r"^( ?\S+) +\d \((.*?) %\)", table, re.MULTILINE)
    assert shares == [("MRI", "50.0"), ("(none)", "25.0"), (" CT", "25.0")]


def test_a_figure_shows_every_split_and_takes_no_name_for_a_formula(
    tmp_path: Path, row_maker: Any, folder_maker: Any
) -> None:
    row = row_maker(1, image_01_modality="$x_{$", correct_answer="$\\frac$")
    splits = {f"part{number}": [row] for number in range(9)}
    draw_statistics(compute_statistics(Benchmark.open(folder_maker(tmp_path / "b", splits))), tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text()
    assert all(f"{split} (1 cases)" in drawn for split in splits)
    assert "$x_{$" in drawn


def test_a_figure_takes_any_label(tmp_path: Path, row_maker: Any, folder_maker: Any) -> None:
    row = row_maker(1, image_01_modality="\x1b[31m核磁", correct_answer="\x07")
    draw_statistics(
        compute_statistics(Benchmark.open(folder_maker(tmp_path / "b", {"a\x1bb": [row]}))), tmp_path / "x.svg"
    )
    assert "核磁" in "".join(ElementTree.parse(tmp_path / "x.svg").getroot().itertext())


@pytest.mark.parametrize("images", [1, 2, 3, 49])
def test_a_figure_has_whole_numbers_on_its_axes(
    tmp_path: Path, row_maker: Any, folder_maker: Any, monkeypatch: pytest.MonkeyPatch, images: int
) -> None:
    kept: list[Any] = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda drawn, *_, **__: kept.append(drawn))
    rows = [row_maker(number, images=images) for number in (1, 2)]
    draw_statistics(
        compute_statistics(Benchmark.open(folder_maker(tmp_path / "b", {"test": rows}))), tmp_path / "x.svg"
    )
    for axes in kept[0].axes:
        assert all(float(tick).is_integer() for tick in (*axes.get_xticks(), *axes.get_yticks()))


def test_a_figure_says_no_images_instead_of_an_empty_axis(tmp_path: Path, row_maker: Any, folder_maker: Any) -> None:
    benchmark = Benchmark.open(folder_maker(tmp_path / "b", {"test": [row_maker(1, images=0)]}))
    draw_statistics(compute_statistics(benchmark), tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text()
    assert drawn.count(">no images<") == 2 and "images (%)" not in drawn
    assert "test (1 cases)" in drawn  # the legend of the other panels
