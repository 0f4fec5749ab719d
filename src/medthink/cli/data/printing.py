"""One case and the statistics of a benchmark, as the terminal and JSON show them."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import to_builtins
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from medthink.cases.case import Case
from medthink.cases.icd import chapter_title
from medthink.cases.statistics import UNKNOWN_CHAPTER, SplitStatistics, Statistics
from medthink.cli import output
from medthink.core.numbers import as_percent

_WIDEST = 100


def case_as_json(case: Case, *, reveal: bool) -> dict[str, object]:
    """A case as plain data; the reference only if asked for."""
    images = [{"slot": one.slot, "path": one.path, "there": one.store.has(one.path)} for one in case.question.images]
    told: dict[str, object] = {
        "case": case.id,
        "title": case.title,
        "split": case.split,
        "history": case.question.history,
        "images": images,
        "options": case.question.options,
    }
    return told | {"reference": to_builtins(case.reference)} if reveal else told


def print_case(case: Case, *, reveal: bool) -> None:
    """Print a case; the reference only if asked for."""
    console = output.console()
    console.width = min(console.width, _WIDEST)
    count = len(case.question.images)
    console.print(Text(output.plain(f"{case.title} · {case.split} · {count} images"), style="bold"))
    _print_text(console, "History", case.question.history)
    _print_images(console, case, reveal=reveal)
    _print_heading(console, "Options")
    for letter, text in case.question.options.items():
        console.print(Padding(Text(output.plain(f"{letter}  {text}")), (0, 0, 0, 2)))
    if reveal:
        _print_reference(console, case)
    else:
        console.print(Text("\nWithheld: captions, findings, answer, discussion, labels (--reveal shows them).", "dim"))


def _print_images(console: Console, case: Case, *, reveal: bool) -> None:
    columns = ["slot", "file", "there"] + (["modality", "sub-modality", "caption"] if reveal else [])
    rows = []
    for image, withheld in zip(case.question.images, case.reference.images, strict=True):
        there = "yes" if image.store.has(image.path) else "no"
        labels = (withheld.modality, withheld.sub_modality, withheld.caption) if reveal else ()
        rows.append((image.slot, image.path, there, *labels))
    _print_heading(console, "Images")
    console.print(output.print_table("", columns, rows, right=[0]))


def _print_reference(console: Console, case: Case) -> None:
    reference = case.reference
    _print_text(console, "Findings", reference.findings)
    _print_text(console, "Answer", f"{reference.answer}  {reference.answer_text}")
    _print_text(console, "Discussion", reference.discussion)
    labels = "\n".join((reference.icd_chapter, reference.icd_block, reference.icd_category))
    _print_text(console, "ICD-10", labels)
    timeline = (
        f"{reference.timepoint_count} timepoints, {reference.interval_text}" if reference.is_longitudinal else "no"
    )
    _print_text(console, "Longitudinal", timeline)


def _print_text(console: Console, title: str, text: str) -> None:
    _print_heading(console, title)
    console.print(Padding(Text(output.plain(text) or "–"), (0, 0, 0, 2)))


def _print_heading(console: Console, title: str) -> None:
    console.print(Text(f"\n{title}", style="bold"))


_BAR, _SHORT_BAR, _WIDE = 24, 8, 110
_IMAGE_BINS = ((0, 0), (1, 1), (2, 4), (5, 8), (9, 12), (13, 20), (21, 49))
_LENGTH_BINS = ((0, 9), (10, 19), (20, 29), (30, 39), (40, 59), (60, 79), (80, sys.maxsize))


def statistics_as_json(statistics: Statistics) -> dict[str, Any]:
    """The statistics of every split and of all together, as plain data."""

    def one(split: SplitStatistics) -> dict[str, Any]:
        means = {
            "images_per_case_mean": split.images_per_case_mean,
            "modalities_per_case_mean": split.modalities_per_case_mean,
            "longitudinal_share": split.longitudinal_share,
            "sub_modalities": split.sub_modalities,
        }
        return {**msgspec.to_builtins(split, str_keys=True), **means}

    return {
        "splits": {name: one(split) for name, split in statistics.splits.items()},
        "overall": one(statistics.overall),
    }


def print_statistics(statistics: Statistics) -> None:
    """Print the summary, and the distributions behind it."""
    console = output.console()
    columns = statistics.columns
    rows = [(name, *(cell(split) for split in columns.values())) for name, cell in _SUMMARY]
    console.print(output.print_table("Summary", ["", *columns], rows, right=range(1, len(columns) + 1)))
    overall = statistics.overall
    _print_shares(console, "Images per case", _binned(columns.values(), "images_per_case", _IMAGE_BINS), columns)
    images = [split.images for split in columns.values()]
    _print_shares(console, "Modalities (images)", _modalities(columns), columns, images)
    _print_shares(console, "Answer letters", _counted(columns.values(), overall.letters, "letters"), columns)
    _print_shares(console, "ICD-10 chapters", _chapters(columns), columns)
    _print_shares(console, "Timepoints", _counted(columns.values(), overall.timepoints, "timepoints"), columns)
    for title, field in (("right", "correct_option_lengths"), ("wrong", "wrong_option_lengths")):
        rows_ = _binned(columns.values(), field, _LENGTH_BINS)
        _print_shares(console, f"Length of {title} options (characters)", rows_, columns)


def _percent(count: int, total: int) -> str:
    return f"{count:,} ({as_percent(count / total)})" if total else "0"


_SUMMARY: tuple[tuple[str, Callable[[SplitStatistics], str]], ...] = (
    ("Cases", lambda s: f"{s.cases:,}"),
    ("Images", lambda s: f"{s.images:,}"),
    ("Images per case, mean", lambda s: f"{s.images_per_case_mean:.2f}"),
    ("Images per case, maximum", lambda s: f"{max(s.images_per_case)}"),
    ("Modalities per case, mean", lambda s: f"{s.modalities_per_case_mean:.2f}"),
    ("Level-1 modalities", lambda s: f"{len(s.modality_images.keys() - {''})}"),
    ("Level-2 modalities", lambda s: f"{s.sub_modalities}"),
    ("ICD-10 chapters", lambda s: f"{len(s.icd_chapters.keys() - {UNKNOWN_CHAPTER})}"),
    ("Longitudinal cases", lambda s: _percent(s.longitudinal_cases, s.cases)),
    ("Right option is the longest", lambda s: _percent(s.correct_longest, s.cases)),
    ("… and is the only longest", lambda s: _percent(s.correct_longest_alone, s.cases)),
)

_Shares = list[tuple[str, list[int]]]


def _counted(splits: Iterable[SplitStatistics], names: Iterable[object], field: str) -> _Shares:
    return [(str(name), [getattr(split, field).get(name, 0) for split in splits]) for name in names]


def _binned(splits: Iterable[SplitStatistics], field: str, bins: Iterable[tuple[int, int]]) -> _Shares:
    def count(split: SplitStatistics, low: int, high: int) -> int:
        return sum(n for value, n in getattr(split, field).items() if low <= value <= high)

    rows = [(_bin_name(low, high), [count(split, low, high) for split in splits]) for low, high in bins]
    return [(name, counts) for name, counts in rows if any(counts)]


def _bin_name(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low} and more" if high == _LENGTH_BINS[-1][1] else f"{low}–{high}"


def _modalities(columns: dict[str, SplitStatistics]) -> _Shares:
    """Each level-1 modality, and indented below it the level-2 ones."""
    rows = []
    overall = list(columns.values())[-1]
    for modality, subs in overall.sub_modality_images.items():
        rows.append((modality or "(none)", [split.modality_images.get(modality, 0) for split in columns.values()]))
        for sub in subs:
            counts = [split.sub_modality_images.get(modality, {}).get(sub, 0) for split in columns.values()]
            rows.append((f"  {sub or '(none)'}", counts))
    return rows


def _chapters(columns: dict[str, SplitStatistics]) -> _Shares:
    overall = list(columns.values())[-1]
    rows = _counted(columns.values(), overall.icd_chapters, "icd_chapters")
    return [
        (name if name == UNKNOWN_CHAPTER else f"{name} {chapter_title(name)}".strip(), counts) for name, counts in rows
    ]


def _print_shares(
    console: Console, title: str, rows: _Shares, columns: dict[str, SplitStatistics], totals: list[int] | None = None
) -> None:
    """A count and share per split, with a bar for the last column."""
    totals = totals or [sum(counts) for counts in zip(*(counts for _, counts in rows), strict=True)]
    longest = max((counts[-1] for _, counts in rows), default=0) or 1
    length = _BAR if console.width >= _WIDE else _SHORT_BAR
    cells = [
        (name, *map(_percent, counts, totals), "█" * round(length * counts[-1] / longest)) for name, counts in rows
    ]
    console.print()
    console.print(output.print_table(title, ["", *columns, ""], cells, right=range(1, len(columns) + 1)))
