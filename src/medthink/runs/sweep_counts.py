"""A sweep's progress: the counts of its runs added up, in the working process or from another one."""

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from medthink.core.errors import DataError
from medthink.core.stored import read_stored
from medthink.runs.lock import is_held
from medthink.runs.prediction import Prediction
from medthink.runs.progress import LiveCounts, Phase
from medthink.runs.status import read_status
from medthink.workflow.condition import Condition

SWEEP_FILE = "sweep.json"


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a sweep, and what it is expected to take."""

    name: str
    model: str
    task: str
    condition: Condition
    base_urls: tuple[str, ...]
    predictions: int
    calls: int


class SweepManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`sweep.json`: the runs of a sweep, the limits they share, and what was made and paid for so far.

    `is_least_paid` says that replies which never arrived may have been billed on top of `paid_usd`.
    """

    format: int = 1
    package: str
    created_at: str
    ended_at: str | None = None
    benchmark: str
    max_usd: float | None = None
    max_calls: int | None = None
    calls_made: int = 0
    paid_usd: float | None = 0.0
    is_least_paid: bool = False
    runs: tuple[PlannedRun, ...]


class _Ear:
    """Listens to one run for the whole sweep."""

    def __init__(self, counts: "SweepCounts", name: str) -> None:
        self._counts = counts
        self._name = name

    def follow(self, counts: LiveCounts) -> None:
        """The run's session begins."""
        self._counts.begin(self._name, counts)

    def enter(self, phase: Phase, detail: str) -> None:
        """Nothing: the counts say it."""

    def see(self, prediction: Prediction, *, is_kept: bool = False) -> None:
        """Nothing: the counts say it."""


class SweepCounts:
    """The counts of a sweep's runs; `total` may be read at any time and from any thread."""

    def __init__(self) -> None:
        self._planned: tuple[PlannedRun, ...] = ()
        self._live: dict[str, LiveCounts] = {}
        self._began = time.time()

    def plan(self, runs: tuple[PlannedRun, ...]) -> None:
        """Set the planned runs."""
        self._planned = runs

    def listener(self, name: str) -> _Ear:
        """A listener for the run of that name."""
        return _Ear(self, name)

    def begin(self, name: str, counts: LiveCounts) -> None:
        """A run's session begins."""
        self._live = self._live | {name: counts}

    def total(self) -> LiveCounts:
        """All runs added up."""
        return add_up(self._planned, self._live, self._began)


def read_sweep(folder: Path) -> SweepManifest:
    """The manifest of a sweep's folder."""
    path = folder / SWEEP_FILE
    if not path.is_file():
        raise DataError("this is not a sweep: it has no sweep.json", file=folder, remedy="give the folder of a sweep")
    return read_stored(path, SweepManifest, name="a sweep", remedy="was it written by another release?")


def read_sweep_status(folder: Path) -> LiveCounts:
    """The counts of a sweep, even while another process works on it."""
    manifest = read_sweep(folder)
    begun = [run.name for run in manifest.runs if (folder / run.name / "run.json").is_file()]
    total = add_up(manifest.runs, {name: read_status(folder / name) for name in begun}, time.time())
    total.is_running = is_held(folder)
    if not total.is_running:
        total.phase, total.detail = "ended", ""
    return total


def add_up(planned: Iterable[PlannedRun], live: dict[str, LiveCounts], began: float) -> LiveCounts:
    """One `LiveCounts` of all runs; a run that has not begun counts with its expected calls."""
    total = LiveCounts()
    total.began = began
    runs = list(planned)
    for run in runs:
        counts = live.get(run.name)
        if counts is None:
            total.predictions += run.predictions
            total.calls += run.calls
        else:
            _add(total, counts, run)
    _name_phase(total, runs, live)
    return total


def _add(total: LiveCounts, counts: LiveCounts, run: PlannedRun) -> None:
    total.predictions += counts.predictions or run.predictions
    total.calls += counts.calls or run.calls
    total.states.update(counts.states)
    for name in ("kept", "done", "failed", "in_flight", "retried", "input_tokens", "output_tokens"):
        setattr(total, name, getattr(total, name) + getattr(counts, name))
    is_known = total.cost_usd is not None and counts.cost_usd is not None
    total.cost_usd = (total.cost_usd or 0.0) + (counts.cost_usd or 0.0) if is_known else None
    total.is_least_cost |= counts.is_least_cost
    total.ends.extend(counts.ends)
    total.began = min(total.began, counts.began)


def _name_phase(total: LiveCounts, runs: list[PlannedRun], live: dict[str, LiveCounts]) -> None:
    """The phase of the working run, and which run it is."""
    working = [name for name, counts in live.items() if counts.phase != "ended"]
    ended = sum(1 for counts in live.values() if counts.phase == "ended")
    phases = [live[name].phase for name in working]
    total.phase = "asking" if "asking" in phases else phases[0] if phases else "preparing"
    total.detail = f"{ended} of {len(runs)} runs done{'; now ' if working else ''}{', '.join(working)}"
