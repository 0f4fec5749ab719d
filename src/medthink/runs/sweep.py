"""A sweep: many runs over one benchmark as one resumable unit.

Its folder holds ordinary runs, one folder each, and `sweep.json`. Runs of one provider (or one server) are made one
after the other under that provider's limits, different providers run in parallel, and all share one budget. A call that
one run has answered is reused by others that would ask the same model the same thing.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from medthink import __version__
from medthink.cases.benchmark import Benchmark
from medthink.core.clock import now_utc
from medthink.core.errors import DataError, MedThinkError, OutsideError
from medthink.core.files import claim_folder
from medthink.core.jsonio import read_stored, write_json
from medthink.runs.calls.asking import SharedCalls
from medthink.runs.calls.budget import Budget, BudgetReached
from medthink.runs.calls.opening import SweepShared
from medthink.runs.engine import run_to_end
from medthink.runs.ledger.lock import is_locked, lock_run
from medthink.runs.ledger.queries import LEDGER, LedgerQueries, Spent
from medthink.runs.manifest import RunSpec
from medthink.runs.progress import LiveCounts, Phase
from medthink.runs.run import read_status
from medthink.runs.selection import select_cases
from medthink.runs.session import RunSession, run_session_async
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction
from medthink.workflow.tasks import count_calls
from medthink.workflow.view import Showing

if TYPE_CHECKING:
    from medthink.models.limits import RateLimits
    from medthink.models.transport import Transport

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

    `is_least_paid` says that nobody counted the tokens of some attempts in `paid_usd`, which is
    None where a model has no price: `unpriced` names those models, and `known_usd` is what the others cost.
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
    known_usd: float = 0.0
    unpriced: tuple[str, ...] = ()
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
    return read_stored(path, SweepManifest, name="a sweep", remedy="use the release that wrote it")


def read_sweep_status(folder: Path) -> LiveCounts:
    """The counts of a sweep, even while another process works on it."""
    manifest = read_sweep(folder)
    begun = [run.name for run in manifest.runs if (folder / run.name / "run.json").is_file()]
    total = add_up(manifest.runs, {name: read_status(folder / name) for name in begun}, time.time())
    total.is_running = is_locked(folder)
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
    total.ends = deque(sorted(total.ends))
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
    total.reasons.update(counts.reasons)
    total.latencies.extend(counts.latencies)
    total.began = min(total.began, counts.began)


def _name_phase(total: LiveCounts, runs: list[PlannedRun], live: dict[str, LiveCounts]) -> None:
    """The phase of the working run, and which run it is."""
    working = [name for name, counts in live.items() if counts.phase != "ended"]
    ended = sum(1 for counts in live.values() if counts.phase == "ended")
    phases = [live[name].phase for name in working]
    total.phase = "asking" if "asking" in phases else phases[0] if phases else "preparing"
    total.detail = f"{ended} of {len(runs)} runs done{'; now ' if working else ''}{', '.join(working)}"


class SweepRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a sweep; its folder is inside the sweep's."""

    name: str
    spec: RunSpec
    transport: "Transport"

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        assert self.spec.out is not None
        return self.spec.out


class SweepSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a sweep; the limits apply to all its runs together."""

    out: Path
    runs: tuple[SweepRun, ...]
    max_usd: float | None = None
    max_calls: int | None = None


class SweepRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of the sweep ended in this session: normally, by the budget or an error; all None if never begun."""

    name: str
    session: RunSession | None = None
    error: MedThinkError | None = None


class SweepSession(msgspec.Struct, frozen=True, kw_only=True):
    """How the sweep ended in this session."""

    manifest: SweepManifest
    runs: tuple[SweepRunResult, ...]
    stopped_by: BudgetReached | None


def run_sweep(spec: SweepSpec, counts: SweepCounts) -> SweepSession:
    """Make or continue every run of the sweep; `counts` is kept up to date for display."""
    claim_folder(spec.out, SWEEP_FILE)
    with lock_run(spec.out):
        manifest = plan_sweep(spec)
        counts.plan(manifest.runs)
        write_json(spec.out / SWEEP_FILE, msgspec.to_builtins(manifest))
        sweep = _SweepWorker(spec, counts)
        try:
            run_to_end(sweep.work())
        finally:
            manifest = refresh_totals(spec, manifest)
            write_json(spec.out / SWEEP_FILE, msgspec.to_builtins(manifest))
    return SweepSession(manifest=manifest, runs=sweep.sessions(), stopped_by=sweep.stopped_by)


def plan_sweep(spec: SweepSpec) -> SweepManifest:
    """The sweep's manifest before the first call: every run with what it is expected to take."""
    benchmark = Benchmark.open(spec.runs[0].spec.benchmark)
    return SweepManifest(
        package=__version__,
        created_at=read_sweep(spec.out).created_at if (spec.out / SWEEP_FILE).exists() else now_utc(),
        benchmark=str(spec.runs[0].spec.benchmark),
        max_usd=spec.max_usd,
        max_calls=spec.max_calls,
        runs=tuple(_plan_run(run, benchmark) for run in spec.runs),
    )


def _plan_run(run: SweepRun, benchmark: Benchmark) -> PlannedRun:
    spec = run.spec
    showing = Showing(spec.condition, benchmark[spec.selection.split])
    shown = [len(showing.show(case)[0].question.images) for case in select_cases(benchmark, spec.selection)]
    return PlannedRun(
        name=run.name,
        model=spec.model,
        task=spec.task,
        condition=spec.condition,
        base_urls=spec.base_urls,
        predictions=len(shown) * spec.condition.samples,
        calls=sum(count_calls(spec.task, spec.condition, images) for images in shown) * spec.condition.samples,
    )


def refresh_totals(spec: SweepSpec, manifest: SweepManifest) -> SweepManifest:
    """The manifest with the totals of its runs so far."""
    paid = total_paid([run.folder for run in spec.runs])
    return replace(
        manifest,
        calls_made=paid.calls,
        paid_usd=paid.spent.cost_usd,
        is_least_paid=paid.spent.uncounted > 0,
        known_usd=paid.known_usd,
        unpriced=tuple(dict.fromkeys(run.spec.model for run in spec.runs if run.folder in paid.unpriced)),
        ended_at=now_utc(),
    )


class PaidTotals(NamedTuple):
    """How many calls were made, including repeats, and what they cost: `known_usd` without runs that have no price."""

    calls: int
    spent: Spent
    known_usd: float
    unpriced: frozenset[Path]


def total_paid(folders: Sequence[Path]) -> PaidTotals:
    """The calls made and paid for in all these runs, each counted once; no process works on them."""
    calls, spent = 0, {}
    for folder in folders:
        if (folder / LEDGER).is_file():
            with closing(LedgerQueries.open(folder)) as records:
                calls += records.calls_paid()
                spent[folder] = records.totals().own
    return PaidTotals(
        calls,
        sum(spent.values(), Spent(0.0)),
        sum(one.cost_usd or 0.0 for one in spent.values()),
        frozenset(folder for folder, one in spent.items() if one.cost_usd is None),
    )


class _SweepWorker:
    """The state of a sweep while it works."""

    def __init__(self, spec: SweepSpec, counts: SweepCounts) -> None:
        self._spec = spec
        self._counts = counts
        paid = total_paid([run.folder for run in spec.runs])
        self._budget = Budget(
            max_usd=spec.max_usd, max_calls=spec.max_calls, spent_usd=paid.spent.cost_usd, calls=paid.calls
        )
        self._ended: dict[str, SweepRunResult] = {}
        self.stopped_by: BudgetReached | None = None

    def sessions(self) -> tuple[SweepRunResult, ...]:
        """How each run ended, in the plan's order."""
        return tuple(self._ended.get(run.name, SweepRunResult(name=run.name)) for run in self._spec.runs)

    async def work(self) -> None:
        """Run every lane to its end."""
        try:
            async with asyncio.TaskGroup() as group:
                for lane in group_by_provider(self._spec.runs):
                    group.create_task(self._work_lane(lane))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _work_lane(self, lane: list[SweepRun]) -> None:
        from medthink.models.limits import Throttle

        throttle = Throttle(strictest_limits([run.transport for run in lane]))
        for run in lane:
            if self.stopped_by is not None:
                return
            try:
                await self._work_run(replace(run, transport=replace(run.transport, throttle=throttle)), lane)
            except OutsideError as error:
                # A provider's problem would end its other runs too; other providers continue.
                self._ended[run.name] = SweepRunResult(name=run.name, error=error)
                return
            except MedThinkError as error:
                self._ended[run.name] = SweepRunResult(name=run.name, error=error)

    async def _work_run(self, run: SweepRun, lane: list[SweepRun]) -> None:
        others = [one.folder for one in lane if one.spec.model == run.spec.model and one.name != run.name]
        with closing(SharedCalls(others)) as siblings:
            session = await run_session_async(
                run.spec,
                transport=run.transport,
                listener=self._counts.listener(run.name),
                common=SweepShared(self._budget, siblings),
            )
        self._ended[run.name] = SweepRunResult(name=run.name, session=session)
        self.stopped_by = self.stopped_by or session.stopped_by


def group_by_provider(runs: Sequence[SweepRun]) -> list[list[SweepRun]]:
    """The runs that share a provider's limits, in the plan's order; a server is its own provider."""
    found: dict[tuple[str, tuple[str, ...]], list[SweepRun]] = {}
    for run in runs:
        found.setdefault((run.spec.model.partition("/")[0], run.spec.base_urls), []).append(run)
    return list(found.values())


def strictest_limits(transports: "Sequence[Transport]") -> "RateLimits":
    """The lowest of each limit."""
    from medthink.models.limits import RateLimits

    def lowest(name: str) -> int | None:
        return min((limit for one in transports if (limit := getattr(one.pace, name)) is not None), default=None)

    return RateLimits(
        concurrency=lowest("concurrency") or 1,
        requests_per_minute=lowest("requests_per_minute"),
        tokens_per_minute=lowest("tokens_per_minute"),
    )
