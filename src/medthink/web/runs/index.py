"""The runs below some folders, read when they change and kept in memory."""

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from medthink.cases.case import Case
from medthink.core.digest import digest_bytes
from medthink.core.errors import DataError, MedThinkError
from medthink.runs.ledger.lock import is_locked
from medthink.runs.manifest import Manifest, read_manifest
from medthink.runs.run import IndexRow, is_settled, read_rows, read_spent, stamp
from medthink.web.app.benchmarks import BenchmarkCache, LoadedSplit
from medthink.workflow.tasks import has_letters

Activity = Literal["running", "finished", "unfinished"]
_DEEPEST = 4
_LOOK_AGAIN_S = 1.0
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


class BrokenRun(msgspec.Struct, frozen=True):
    """A folder with a run.json that cannot be read, with the reason."""

    name: str
    problem: str


class IndexedRun:
    """The current state of a run: its manifest, a short row for each prediction, and its cases.

    `doubt` says why right and wrong are unknown, if the benchmark cannot be used.
    """

    def __init__(self, path: Path, name: str, library: BenchmarkCache) -> None:
        self.path = path
        self.name = name
        self.slug = make_slug(path, name)
        is_running = is_locked(path)
        self.manifest: Manifest = read_manifest(path)
        self.rows: tuple[IndexRow, ...] = read_rows(path)
        # For a run that is in progress or was killed, only the ledger knows the calls without a reply.
        self._spent = read_spent(path, is_running=is_running) if not is_settled(path, self.manifest) else None
        found = library.find(path, self.manifest)
        self.bench = found if isinstance(found, LoadedSplit) else None
        self.doubt = found if isinstance(found, str) else ""
        self._refuse_strangers()
        progress = self.manifest.progress
        is_complete = progress is not None and progress.is_complete
        self.activity: Activity = "running" if is_running else "finished" if is_complete else "unfinished"

    def _refuse_strangers(self) -> None:
        known = self.bench.cases if self.bench else None
        strange = [row.case for row in self.rows if known is not None and row.case not in known]
        if strange:
            raise DataError(
                f"a prediction names case {strange[0]}, which is not in its benchmark",
                file=self.path,
                remedy="restore the file, or run the same command again",
            )

    @property
    def has_letters(self) -> bool:
        """Whether letters were asked for, so that answers can be right or wrong."""
        return has_letters(self.manifest.task, self.manifest.condition)

    @property
    def selected(self) -> dict[int, Case]:
        """The run's cases; empty if the benchmark cannot be used."""
        return {} if self.bench is None else self.bench.select(self.manifest.selection)

    @property
    def total(self) -> int | None:
        """The number of expected predictions, as far as known."""
        if self.bench is not None:
            return len(self.selected) * self.manifest.condition.samples
        return self.manifest.progress.cases if self.manifest.progress else None

    @cached_property
    def states(self) -> dict[str, int]:
        """The number of predictions by state, the commonest first."""
        return dict(Counter(row.state for row in self.rows).most_common())

    @property
    def cost_usd(self) -> float | None:
        """The cost of all calls so far; None as soon as one of them has no known price."""
        known = self._spent or self.manifest.progress
        if known is not None:
            return known.cost_usd
        costs = [row.cost_usd for row in self.rows]
        return None if None in costs else sum(cost for cost in costs if cost)

    @property
    def is_least_cost(self) -> bool:
        """Whether the cost includes attempts whose tokens were not counted."""
        if self._spent is not None:
            return self._spent.uncounted > 0
        return self.manifest.progress is not None and self.manifest.progress.is_least_cost

    @property
    def is_unanswered(self) -> bool:
        """Whether every case failed and no call was answered: the run has no score."""
        return self.manifest.progress is not None and self.manifest.progress.is_unanswered

    @property
    def stop(self) -> str:
        """What ended the last session, and what to do, if it was an error."""
        progress = self.manifest.progress
        if progress is None or self.activity == "running" or not progress.stopped_by:
            return ""
        return " → ".join(part for part in (progress.stopped_by, progress.remedy) if part)

    @cached_property
    def hits(self) -> list[bool]:
        """Whether each prediction is right, in the order of the rows; empty if there are no graded answers."""
        if self.bench is None or not self.has_letters or self.is_unanswered:
            return []
        answers = self.bench.answers
        return [row.state == "ok" and row.prediction == answers[row.case] for row in self.rows]

    def is_right(self, row: IndexRow) -> bool | None:
        """Whether a prediction is right; None if there is nothing to compare it with."""
        answer = self.bench.answers.get(row.case) if self.bench and self.has_letters else None
        return None if answer is None else row.state == "ok" and row.prediction == answer

    @cached_property
    def _by_case(self) -> dict[int, list[IndexRow]]:
        found: dict[int, list[IndexRow]] = {}
        for row in self.rows:
            found.setdefault(row.case, []).append(row)
        return found

    def rows_of(self, case_id: int) -> list[IndexRow]:
        """The predictions of one case, by sample."""
        return self._by_case.get(case_id, [])

    @cached_property
    def rights(self) -> dict[int, float]:
        """The share of right answers of every case that has a prediction."""
        if self.manifest.condition.samples == 1:
            return {row.case: float(hit) for row, hit in zip(self.rows, self.hits, strict=False)}
        found: dict[int, list[bool]] = {}
        for row, hit in zip(self.rows, self.hits, strict=False):
            found.setdefault(row.case, []).append(hit)
        return {number: sum(hits) / len(hits) for number, hits in found.items()}

    @cached_property
    def condition(self) -> dict[str, Any]:
        """The condition's fields by name."""
        fields: dict[str, Any] = msgspec.to_builtins(self.manifest.condition)
        return fields

    @property
    def group(self) -> tuple[str, str]:
        """The key of runs in one table: the benchmark's texts, and the selection of cases."""
        return self.manifest.text_fingerprint, str(self.manifest.selection)

    @property
    def family(self) -> tuple[str, ...]:
        """The key of runs of one model that differ only in their condition."""
        return (*self.group, self.manifest.model, self.manifest.task)


class RunIndex:
    """The runs of some folders; checked at most once a second, reloaded when changed."""

    def __init__(self, places: Sequence[Path], library: BenchmarkCache) -> None:
        self._places = tuple(places)
        self.library = library
        self._kept: dict[Path, tuple[tuple[int, ...], IndexedRun | BrokenRun]] = {}
        self._looked_at = -_LOOK_AGAIN_S
        self._lock = threading.Lock()

    def runs(self) -> list[IndexedRun]:
        """Every run that can be read, by name."""
        return [one for one in self._look() if isinstance(one, IndexedRun)]

    def broken(self) -> list[BrokenRun]:
        """The runs that cannot be read."""
        return [one for one in self._look() if isinstance(one, BrokenRun)]

    def find(self, slug: str) -> IndexedRun | None:
        """The run with this name in URLs."""
        return next((one for one in self.runs() if one.slug == slug), None)

    def _look(self) -> list[IndexedRun | BrokenRun]:
        with self._lock:
            if time.monotonic() - self._looked_at >= _LOOK_AGAIN_S:
                self._read_changed()
                self._looked_at = time.monotonic()
            return [one for _, one in self._kept.values()]

    def _read_changed(self) -> None:
        found: dict[Path, tuple[tuple[int, ...], IndexedRun | BrokenRun]] = {}
        for name, path in sorted(find_runs(self._places).items()):
            now = (*stamp(path), int(is_locked(path)))
            kept = self._kept.get(path)
            found[path] = kept if kept and kept[0] == now else (now, self._read(path, name))
        self._kept = found

    def _read(self, path: Path, name: str) -> IndexedRun | BrokenRun:
        try:
            return IndexedRun(path, name, self.library)
        except MedThinkError as error:
            return BrokenRun(name, str(error))


def find_runs(places: Sequence[Path]) -> dict[str, Path]:
    """The runs at or below these paths, each named by the distinguishing part of its path."""
    paths = sorted({path.resolve() for place in places for path in _walk(place, _DEEPEST)})
    shared = os.path.commonpath([path.parent for path in paths]) if paths else ""
    return {path.relative_to(shared).as_posix(): path for path in paths}


def make_slug(path: Path, name: str) -> str:
    """The run's name in URLs: readable and unique for every folder."""
    readable = _NOT_IN_A_NAME.sub("-", name.lower()).strip("-")[:40] or "run"
    return f"{readable}-{digest_bytes(str(path.resolve()).encode(errors='surrogateescape'))[:6]}"


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / "run.json").is_file():
        yield folder
        return
    if not depth:
        return
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return
    for name in inside:
        yield from _walk(folder / name, depth - 1)
