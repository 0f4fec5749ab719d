"""Selection of the cases that a run covers."""

from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path

import msgspec
from msgspec.structs import replace

from medthink.cases.benchmark import Benchmark, HeldSplit, hold_split
from medthink.cases.case import Case
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError

DEFAULT_SPLIT = "test"


class Shard(msgspec.Struct, frozen=True):
    """One of `count` parts of a run, counted from 1; a case's part depends only on its number."""

    number: int
    count: int

    def holds(self, case_id: int) -> bool:
        """Whether the case belongs to this part."""
        return seed_from("shard", case_id) % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Read `2/8`, or raise UsageError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UsageError(f"not a shard: {text!r}", remedy="write i/n, such as --shard 1/4")
    return Shard(int(number), int(count))


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of the benchmark that the run covers."""

    split: str
    cases: tuple[int, ...] | None = None
    limit: int | None = None
    shard: Shard | None = None


def select_cases(benchmark: Benchmark, selection: Selection) -> Iterator[Case]:
    """The cases that a selection names, in the benchmark's order."""
    return pick_cases(benchmark[selection.split], selection)


def pick_cases(cases: Iterable[Case], selection: Selection) -> Iterator[Case]:
    """The cases that a selection names, from a split that was already read."""
    wanted = None if selection.cases is None else set(selection.cases)
    taken = 0
    for case in cases:
        if wanted is not None and case.id not in wanted:
            continue
        if selection.limit is not None and taken >= selection.limit:
            return
        taken += 1
        if selection.shard is None or selection.shard.holds(case.id):
            yield case


def select_from(benchmark: Benchmark, selection: Selection | None = None) -> Selection:
    """The selection of a benchmark object: its split, and the cases its filter keeps.

    A run covers one split, so a filter that keeps cases of several is refused, and so is a selection of cases that the
    object lacks.
    """
    split = selection.split if selection else _split_of(benchmark)
    whole = selection or Selection(split=split)
    held = benchmark[split]
    if not benchmark.is_filtered:
        return whole
    kept = tuple(sorted(case.id for case in held))
    if not kept:
        raise UsageError(
            f"the filter keeps no case of the split {split}", remedy="use a weaker filter, or another split"
        )
    if outside := sorted(set(whole.cases or ()) - set(kept)):
        raise UsageError(
            f"the filter leaves out selected cases: {', '.join(map(str, outside))}",
            remedy="select among the cases that the filter keeps",
        )
    return replace(whole, cases=whole.cases or kept)


def _split_of(benchmark: Benchmark) -> str:
    splits = benchmark.splits
    if benchmark.is_filtered and len(splits) > 1:
        splits = tuple(dict.fromkeys(case.split for case in benchmark))
    elif len(splits) > 1 and DEFAULT_SPLIT in splits:
        splits = (DEFAULT_SPLIT,)
    if len(splits) != 1:
        named = ", ".join(splits) or "none"
        raise UsageError(
            f"a run covers one split, but these cases are from several: {named}",
            remedy=f'pass one split, such as benchmark["{DEFAULT_SPLIT}"].filter(…)',
        )
    return splits[0]


def count_cases(benchmark: Benchmark, selection: Selection) -> int:
    """The number of cases in a selection, or UsageError if one is missing."""
    found = {case.id for case in select_cases(benchmark, replace(selection, shard=None))}
    refuse_missing(selection, found)
    return sum(1 for case_id in found if selection.shard is None or selection.shard.holds(case_id))


def refuse_missing(selection: Selection, found: Set[int]) -> None:
    """Raise UsageError if a selection names a case that was not found."""
    missing = set(selection.cases or ()) - found if selection.limit is None else set()
    if missing:
        raise UsageError(
            f"no such case in the split {selection.split}: {', '.join(map(str, sorted(missing)))}",
            remedy="check --cases and --split",
        )


ReadSelected = Callable[[Path, Selection], HeldSplit]


def read_selected(benchmark: Path, selection: Selection) -> HeldSplit:
    """Read the cases that a selection names."""
    held = hold_split(Benchmark.open(benchmark)[selection.split])
    return replace(held, cases={case.id: case for case in pick_cases(held.cases.values(), selection)})
