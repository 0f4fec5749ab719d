"""One pass over a split before the first call: fingerprints, the cases selected, their images and expected calls."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from medthink.cases.benchmark import Benchmark, CasePrint, Fingerprints
from medthink.cases.case import Case
from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.runs.selection import Selection, pick_cases, refuse_missing
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import count_calls
from medthink.workflow.view import apply

CASES_FILE = "cases.json"


class Survey(NamedTuple):
    """What one pass over the split found; `digests` pins each case of the split, texts and images, by its number."""

    fingerprints: Fingerprints
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
        shown = len(apply(self._condition, case.question).question.images)
        self.calls += count_calls(self._task, self._condition, shown)
        self.images += shown


def survey(benchmark: Benchmark, selection: Selection, *, task: str, condition: Condition) -> Survey:
    """Read the split once; UsageError if the selection names a missing case, or all images are missing."""
    digests: dict[int, str] = {}
    missing: dict[int, int] = {}
    counter = _Counter(task, condition)

    def note(case: Case, made: CasePrint) -> None:
        digests[case.id] = made.digest
        missing[case.id] = made.missing_images

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
        raise UsageError(
            f"{benchmark.path}: all {counter.images:,} images are missing",
            remedy="medthink data pull fetches them",
        )
    return Survey(passing.finish(), digests, len(chosen), counter.calls, counter.images, absent)


def write_digests(out: Path, digests: dict[int, str]) -> None:
    """Store each case's digest, so that a later session can tell which have changed."""
    write_atomic(out / CASES_FILE, [msgspec.json.encode(digests)])


def find_changed(out: Path, digests: dict[int, str]) -> set[int] | None:
    """The cases that have changed since the run began; None if their digests were not stored."""
    try:
        before = msgspec.json.decode((out / CASES_FILE).read_bytes(), type=dict[int, str])
    except (OSError, msgspec.MsgspecError):
        return None
    return {case_id for case_id in before | digests if before.get(case_id) != digests.get(case_id)}
