"""Selection of the cases that a run covers."""

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from medthink.cases.benchmark import Benchmark, CaseFingerprint, Fingerprints, HeldSplit, hold_split
from medthink.cases.case import Case
from medthink.cases.images.stores import FOLDER, LINKS_OUT
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import count_calls
from medthink.workflow.view import show_under_condition

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


CASES_FILE = "cases.json"


class PinnedImages:
    """The images that a survey read, each by its path and content; eight bytes are kept of each."""

    def __init__(self) -> None:
        self._marks = array("Q")

    def add(self, path: str, digest: str) -> None:
        """Pin an image."""
        self._marks.append(_mark(path, digest))

    def finish(self) -> None:
        """Put them in order, when all are added."""
        self._marks = array("Q", sorted(self._marks))

    def holds(self, path: str, digest: str) -> bool:
        """Whether the image at this path had this content."""
        mark = _mark(path, digest)
        place = bisect_left(self._marks, mark)
        return place < len(self._marks) and self._marks[place] == mark


def _mark(path: str, digest: str) -> int:
    name = path.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name + digest.encode()).digest()[:8], "big")


class Survey(NamedTuple):
    """The result of one pass over the split; `digests` has the digest of each case's texts and images, by number."""

    fingerprints: Fingerprints
    pins: PinnedImages
    digests: dict[int, str]
    cases: int
    calls: int
    images: int
    missing_images: int


class _Counter:
    """Counts the cases of a selection while they pass."""

    def __init__(self, task: str, condition: Condition) -> None:
        self._task = task
        # A swapped image counts as one of the case's own; the run corrects the total as it goes.
        self._condition = msgspec.structs.replace(condition, swap_images=False)
        self.calls = self.images = 0

    def see(self, case: Case) -> None:
        shown = len(show_under_condition(self._condition, case.question).question.images)
        self.calls += count_calls(self._task, self._condition, shown)
        self.images += shown


def survey(benchmark: Benchmark, selection: Selection, *, task: str, condition: Condition) -> Survey:
    """Read the split once; UsageError if the selection names a missing case, or all images are missing."""
    digests: dict[int, str] = {}
    missing: dict[int, int] = {}
    first_missing: list[str] = []
    pins = PinnedImages()
    counter = _Counter(task, condition)

    def note(case: Case, made: CaseFingerprint) -> None:
        digests[case.id] = made.digest
        missing[case.id] = made.missing_images
        for image, digest in zip(case.question.images, made.images, strict=True):
            if digest is not None:
                pins.add(image.path, digest)
            elif not first_missing:
                first_missing.append(image.path)

    passing = benchmark[selection.split].pass_prints(note)
    unsharded = msgspec.structs.replace(selection, shard=None)
    found: set[int] = set()
    chosen: set[int] = set()
    for case in pick_cases(passing.cases, unsharded):
        found.add(case.id)
        if selection.shard is None or selection.shard.holds(case.id):
            chosen.add(case.id)
            counter.see(case)
    refuse_missing(selection, found)
    absent = sum(missing[case_id] for case_id in chosen)
    if counter.images and absent >= counter.images:
        raise _no_images(benchmark, counter.images, first_missing[0])
    fingerprints = passing.finish()
    pins.finish()
    return Survey(fingerprints, pins, digests, len(chosen), counter.calls, counter.images, absent)


def _no_images(benchmark: Benchmark, count: int, path: str) -> UsageError:
    """All images are missing, or none may be opened; `path` is of one of them."""
    problem = benchmark.images.problem(path)
    if problem.startswith(LINKS_OUT):
        return UsageError(
            f"{benchmark.path}: none of the {count:,} images may be read: {problem}",
            remedy=f"replace the link by the folder itself, or give the benchmark that has {FOLDER}/ in it",
        )
    return UsageError(
        f"{benchmark.path}: all {count:,} images are missing", remedy="run medthink data pull -o to fetch them"
    )


def write_digests(out: Path, digests: dict[int, str]) -> None:
    """Store each case's digest, so that a later session can detect changes."""
    write_atomic(out / CASES_FILE, [msgspec.json.encode(digests)])


def find_changed(out: Path, digests: dict[int, str]) -> set[int] | None:
    """The cases that have changed since the run began; None if their digests were not stored."""
    try:
        before = msgspec.json.decode((out / CASES_FILE).read_bytes(), type=dict[int, str])
    except (OSError, msgspec.MsgspecError):
        return None
    return {case_id for case_id in before | digests if before.get(case_id) != digests.get(case_id)}
