"""The survey of a benchmark: one pass that fingerprints it, pins its images and counts what a run will ask."""

import asyncio
import hashlib
import threading
from array import array
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from medthink.cases.benchmark import Benchmark, CaseFingerprint, Fingerprints
from medthink.cases.case import Case
from medthink.cases.images.stores import FOLDER, LINKS_OUT
from medthink.core.errors import MedThinkError, UsageError
from medthink.core.files import write_atomic
from medthink.runs.selection import Selection, pick_cases, refuse_missing
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import count_calls
from medthink.workflow.view import show_under_condition

CASES_FILE = "cases.json"
CHANGED = "it has changed since the run was started"


class PinnedImages:
    """The images that a survey reads, each by its path and content; eight bytes are kept of each.

    While the survey is still under way, images may be sent that it has not reached: they are compared when it ends.
    `strays` are then the cases that were asked about other images.
    """

    def __init__(self) -> None:
        self._marks = array("Q")
        self._early: set[tuple[int, int]] | None = set()
        self._turn = threading.Lock()
        self.strays: frozenset[int] = frozenset()

    def add(self, path: str, digest: str) -> None:
        """Pin an image."""
        self._marks.append(_mark(path, digest))

    def finish(self) -> None:
        """Put them in order, when all are added, and find what was sent otherwise."""
        with self._turn:
            self._marks = array("Q", sorted(self._marks))
            self.strays = frozenset(case_id for case_id, mark in self._early or () if not self._has(mark))
            self._early = None

    def holds(self, case_id: int, path: str, digest: str) -> bool:
        """Whether the image at this path, about to be sent for a case, has the content that the survey found."""
        mark = _mark(path, digest)
        with self._turn:
            if self._early is None:
                return self._has(mark)
            self._early.add((case_id, mark))
            return True

    def _has(self, mark: int) -> bool:
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


def survey(
    benchmark: Benchmark,
    selection: Selection,
    *,
    task: str,
    condition: Condition,
    pins: PinnedImages | None = None,
    stop: threading.Event | None = None,
) -> Survey:
    """Read the split once; UsageError if the selection names a missing case, or all images are missing.

    The images go into `pins`; `stop` ends it early.
    """
    digests: dict[int, str] = {}
    missing: dict[int, int] = {}
    first_missing: list[str] = []
    pins = PinnedImages() if pins is None else pins
    counter = _Counter(task, condition)

    def note(case: Case, made: CaseFingerprint) -> None:
        if stop is not None and stop.is_set():
            raise _Stopped("the survey was stopped")
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


class _Stopped(MedThinkError):
    """The session ended before its survey."""


class SurveyBeside:
    """A survey on a thread of its own, while the first calls are made; enter it as a context, which ends it."""

    def __init__(self, benchmark: Benchmark, selection: Selection, *, task: str, condition: Condition) -> None:
        self.pins = PinnedImages()
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="survey")
        work = partial(survey, task=task, condition=condition, pins=self.pins, stop=self._stop)
        self._seen = self._pool.submit(work, benchmark, selection)

    async def wait(self) -> Survey:
        """The finished survey, or its error."""
        return await asyncio.wrap_future(self._seen)

    def __enter__(self) -> "SurveyBeside":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()


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


def find_changes_at(place: Path, run: Path, split: str) -> frozenset[int]:
    """The cases of a benchmark that have changed since the run began.

    Empty if that is not known, or if no case is as it was: then it is another benchmark.
    """
    if not (run / CASES_FILE).is_file():
        return frozenset()
    digests: dict[int, str] = {}
    Benchmark.open(place)[split].remembering().pass_prints(
        lambda case, made: digests.update({case.id: made.digest})
    ).finish()
    changed = find_changed(run, digests)
    return frozenset(changed) if changed and digests.keys() - changed else frozenset()
