"""A sweep: many runs over one benchmark as one resumable unit.

Its folder holds ordinary runs, one folder each, and `sweep.json`. Runs of one provider (or one server) are made one
after the other under that provider's limits, different providers run in parallel, and all share one budget. A call that
one run has answered is reused by others that would ask the same model the same thing.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from medthink import __version__
from medthink.cases.benchmark import Benchmark
from medthink.core.clock import now_utc
from medthink.core.errors import LedgerError, MedThinkError, OutsideError
from medthink.core.jsonio import write_json
from medthink.runs.budget import Budget, BudgetReached
from medthink.runs.calls import Common
from medthink.runs.lock import hold
from medthink.runs.loop import run_to_end
from medthink.runs.records import LEDGER, Paid, Records
from medthink.runs.selection import select_cases
from medthink.runs.session import Session, work_on
from medthink.runs.showing import Showing
from medthink.runs.siblings import Siblings
from medthink.runs.spec import RunSpec
from medthink.runs.sweep_counts import SWEEP_FILE, PlannedRun, SweepCounts, SweepManifest, read_sweep
from medthink.workflow.tasks import count_calls

if TYPE_CHECKING:
    from medthink.models.limits import Pace
    from medthink.models.transport import Transport


class SweptRun(msgspec.Struct, frozen=True, kw_only=True):
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
    runs: tuple[SweptRun, ...]
    max_usd: float | None = None
    max_calls: int | None = None


class SweptSession(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of the sweep ended in this session: normally, by the budget or an error; all None if never begun."""

    name: str
    session: Session | None = None
    error: MedThinkError | None = None


class SweepSession(msgspec.Struct, frozen=True, kw_only=True):
    """How the sweep ended in this session."""

    manifest: SweepManifest
    runs: tuple[SweptSession, ...]
    stopped_by: BudgetReached | None


def carry_out_sweep(spec: SweepSpec, counts: SweepCounts) -> SweepSession:
    """Make or continue every run of the sweep; `counts` is kept up to date for display."""
    make_sweep_folder(spec.out)
    with hold(spec.out):
        manifest = plan_sweep(spec)
        counts.plan(manifest.runs)
        write_json(spec.out / SWEEP_FILE, msgspec.to_builtins(manifest))
        sweep = _SweepWorker(spec, counts)
        try:
            run_to_end(sweep.work())
        finally:
            manifest = sum_up(spec, manifest)
            write_json(spec.out / SWEEP_FILE, msgspec.to_builtins(manifest))
    return SweepSession(manifest=manifest, runs=sweep.sessions(), stopped_by=sweep.stopped_by)


def make_sweep_folder(out: Path) -> None:
    """Make the sweep's folder, or raise LedgerError when it holds something else."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(f"{out}: cannot be created: {error.strerror}", remedy="choose another out") from None
    if not (out / SWEEP_FILE).exists() and any(path.name != ".lock" for path in out.iterdir()):
        raise LedgerError(f"{out} is not empty and holds no sweep", remedy="choose another out")


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


def _plan_run(run: SweptRun, benchmark: Benchmark) -> PlannedRun:
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


def sum_up(spec: SweepSpec, manifest: SweepManifest) -> SweepManifest:
    """The manifest with the totals of its runs so far."""
    paid = total_paid([run.folder for run in spec.runs])
    return replace(
        manifest,
        calls_made=paid.calls,
        paid_usd=paid.cost_usd,
        is_least_paid=any(_lost_replies(run.folder) for run in spec.runs),
        ended_at=now_utc(),
    )


def _lost_replies(folder: Path) -> int:
    """How many replies of a run never arrived and may have been billed."""
    if not (folder / LEDGER).is_file():
        return 0
    with closing(Records.open(folder)) as records:
        return records.totals().lost_replies(is_running=False)


def total_paid(folders: Sequence[Path]) -> Paid:
    """The calls made and paid for in all these runs, each counted once."""
    calls, cost = 0, 0.0
    is_known = True
    for folder in folders:
        if not (folder / LEDGER).is_file():
            continue
        records = Records.open(folder)
        paid = records.paid()
        records.close()
        calls += paid.calls
        is_known = is_known and paid.cost_usd is not None
        cost += paid.cost_usd or 0.0
    return Paid(calls, cost if is_known else None)


class _SweepWorker:
    """The state of a sweep while it works."""

    def __init__(self, spec: SweepSpec, counts: SweepCounts) -> None:
        self._spec = spec
        self._counts = counts
        paid = total_paid([run.folder for run in spec.runs])
        self._budget = Budget(max_usd=spec.max_usd, max_calls=spec.max_calls, spent_usd=paid.cost_usd, calls=paid.calls)
        self._ended: dict[str, SweptSession] = {}
        self.stopped_by: BudgetReached | None = None

    def sessions(self) -> tuple[SweptSession, ...]:
        """How each run ended, in the plan's order."""
        return tuple(self._ended.get(run.name, SweptSession(name=run.name)) for run in self._spec.runs)

    async def work(self) -> None:
        """Run every lane to its end."""
        try:
            async with asyncio.TaskGroup() as group:
                for lane in lanes(self._spec.runs):
                    group.create_task(self._work_lane(lane))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _work_lane(self, lane: list[SweptRun]) -> None:
        from medthink.models.limits import Throttle

        throttle = Throttle(strictest_pace([run.transport for run in lane]))
        for run in lane:
            if self.stopped_by is not None:
                return
            try:
                await self._work_run(replace(run, transport=replace(run.transport, throttle=throttle)), lane)
            except OutsideError as error:
                # A provider's problem would end its other runs too; other providers continue.
                self._ended[run.name] = SweptSession(name=run.name, error=error)
                return
            except MedThinkError as error:
                self._ended[run.name] = SweptSession(name=run.name, error=error)

    async def _work_run(self, run: SweptRun, lane: list[SweptRun]) -> None:
        others = [one.folder for one in lane if one.spec.model == run.spec.model and one.name != run.name]
        with closing(Siblings(others)) as siblings:
            session = await work_on(
                run.spec,
                transport=run.transport,
                listener=self._counts.listener(run.name),
                common=Common(self._budget, siblings),
            )
        self._ended[run.name] = SweptSession(name=run.name, session=session)
        self.stopped_by = self.stopped_by or session.stopped_by


def lanes(runs: Sequence[SweptRun]) -> list[list[SweptRun]]:
    """The runs that share a provider's limits, in the plan's order; a server is its own provider."""
    found: dict[tuple[str, tuple[str, ...]], list[SweptRun]] = {}
    for run in runs:
        found.setdefault((run.spec.model.partition("/")[0], run.spec.base_urls), []).append(run)
    return list(found.values())


def strictest_pace(transports: "Sequence[Transport]") -> "Pace":
    """The lowest of each limit."""
    from medthink.models.limits import Pace

    def lowest(name: str) -> int | None:
        return min((limit for one in transports if (limit := getattr(one.pace, name)) is not None), default=None)

    return Pace(
        concurrency=lowest("concurrency") or 1,
        requests_per_minute=lowest("requests_per_minute"),
        tokens_per_minute=lowest("tokens_per_minute"),
    )
