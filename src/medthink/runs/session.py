"""One session of a run: open or continue it, do what is left, write what came out."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.clock import now_utc
from medthink.core.errors import LedgerError, UsageError
from medthink.core.files import write_atomic
from medthink.runs.answerers import Answerer, open_answerer
from medthink.runs.asking import Desk
from medthink.runs.budget import Budget, BudgetReached
from medthink.runs.doubts import count_image_doubts
from medthink.runs.engine import Engine
from medthink.runs.index import PREDICTIONS_FILE, write_index
from medthink.runs.ledger import Ledger
from medthink.runs.lock import hold
from medthink.runs.loop import run_to_end
from medthink.runs.manifest import Manifest, Progress, Selection, read_manifest, refuse_other_run, write_manifest
from medthink.runs.progress import Listener, Tracker
from medthink.runs.records import LEDGER, Records
from medthink.runs.run import Run
from medthink.runs.showing import Showing
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import count_calls, default_condition, find_task, prompt_versions

if TYPE_CHECKING:
    from medthink.models.transport import Transport


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a session is told: the command line's flags map one to one onto these fields.

    Only what sends nothing does without `out`.
    """

    benchmark: Path
    model: str
    out: Path | None = None
    task: str = "answer"
    condition: Condition = Condition()
    selection: Selection = Selection(split="test")
    base_urls: tuple[str, ...] = ()
    prices: Path | None = None
    max_usd: float | None = None
    max_calls: int | None = None


class Limits(TypedDict, total=False):
    """What a run may take, and the prices it is reckoned by."""

    max_usd: float | None
    max_calls: int | None
    prices: Path | None


class Session(msgspec.Struct, frozen=True):
    """How a session ended: the run, the calls it made, and what stopped it early, if anything did."""

    run: Run
    calls_made: int
    stopped_by: BudgetReached | None


def carry_out(order: Order, *, transport: "Transport | None" = None, listener: Listener | None = None) -> Session:
    """Make or continue the run; works inside a notebook, where a loop is running already."""
    if order.out is None:
        raise UsageError("where is the run to be kept?", remedy="give --out")
    session = _Worker(order, order.out, transport, listener)
    return run_to_end(session.work())


def run(
    benchmark: Benchmark | str | Path,
    *,
    model: str,
    out: str | Path,
    task: str = "answer",
    condition: Condition | None = None,
    selection: Selection | None = None,
    base_urls: tuple[str, ...] = (),
    transport: "Transport | None" = None,
    **limits: Unpack[Limits],
) -> Run:
    """Run a model over a benchmark from Python, as `medthink run` does from the shell; returns the run.

    A run that `max_usd` or `max_calls` stopped is returned too: its `manifest.progress.is_complete` says so.
    """
    order = Order(
        benchmark=benchmark.path if isinstance(benchmark, Benchmark) else Path(benchmark),
        model=model,
        out=Path(out),
        task=task,
        condition=condition or default_condition(task),
        selection=selection or Selection(split="test"),
        base_urls=base_urls,
        **limits,
    )
    return carry_out(order, transport=transport).run


def select_cases(benchmark: Benchmark, selection: Selection) -> Iterator[Case]:
    """The cases that a selection names, in the benchmark's order."""
    wanted = None if selection.cases is None else set(selection.cases)
    taken = 0
    for case in benchmark[selection.split]:
        if wanted is not None and case.id not in wanted:
            continue
        if selection.limit is not None and taken >= selection.limit:
            return
        taken += 1
        if selection.shard is None or selection.shard.holds(case.id):
            yield case


def count_cases(benchmark: Benchmark, selection: Selection) -> int:
    """How many cases a selection names, or UsageError when it names one that is not there."""
    found = {case.id for case in select_cases(benchmark, replace(selection, shard=None))}
    missing = set(selection.cases or ()) - found if selection.limit is None else set()
    if missing:
        raise UsageError(
            f"no such case in the split {selection.split}: {', '.join(map(str, sorted(missing)))}",
            remedy="check --cases and --split",
        )
    return sum(1 for case_id in found if selection.shard is None or selection.shard.holds(case_id))


class _Worker:
    """The state of one session while it works."""

    def __init__(self, order: Order, out: Path, transport: "Transport | None", listener: Listener | None) -> None:
        self._order = order
        self._out = out
        self._transport = transport
        self._tracker = Tracker(listener, out)
        self._task = find_task(order.task, order.condition)
        self._benchmark = Benchmark.open(order.benchmark)

    async def work(self) -> Session:
        """Do it all under the run's lock."""
        order = self._order
        total = count_cases(self._benchmark, order.selection)
        answerer = open_answerer(
            order.model,
            benchmark=self._benchmark,
            base_urls=order.base_urls,
            transport=self._transport,
            prices=order.prices,
        )
        try:
            make_folder(self._out)
            with hold(self._out):
                session = await self._work_with(answerer, total * order.condition.samples)
                self._tracker.leave()
                return session
        finally:
            await answerer.close()

    async def _work_with(self, answerer: Answerer[Prompt], total: int) -> Session:
        order = self._order
        tracker = self._tracker
        tracker.counts.predictions = total
        tracker.counts.calls = self._count_calls() * order.condition.samples
        tracker.enter("fingerprinting")
        manifest, is_same_release = self._settle_manifest()
        tracker.enter("preparing")
        ledger = Ledger(self._out / LEDGER, places=answerer.concurrency)
        try:
            totals = ledger.totals()
            tracker.counts.count_tokens(ledger.tokens())
            tracker.counts.cost_usd, tracker.counts.is_least_cost = totals.cost_usd, totals.unseen_replies > 0
            budget = Budget(
                max_usd=order.max_usd,
                max_calls=order.max_calls,
                spent_usd=totals.cost_usd,
                calls=totals.calls_made,
            )
            desk = Desk(answerer, ledger, budget, tracker=tracker)
            engine = Engine(
                self._task,
                order.condition,
                desk=desk,
                ledger=ledger,
                benchmark=self._benchmark[order.selection.split],
                is_same_release=is_same_release,
            )
            tracker.enter(answerer.first_phase)
            stopped_by = await engine.run(select_cases(self._benchmark, order.selection))
            tracker.enter("writing")
            write_results(self._out, manifest, ledger, total)
        finally:
            ledger.close()
        return Session(Run(self._out), desk.made, stopped_by)

    def _count_calls(self) -> int:
        """How many calls one sample of every case is expected to take."""
        order = self._order
        showing = Showing(order.condition, self._benchmark[order.selection.split])
        cases = select_cases(self._benchmark, order.selection)
        return sum(
            count_calls(order.task, order.condition, len(showing.show(case)[0].question.images)) for case in cases
        )

    def _settle_manifest(self) -> tuple[Manifest, bool]:
        """The run's manifest, and whether all that is there already was made by this release."""
        new = plan_manifest(self._order, self._benchmark)
        old = find_earlier(self._out, new)
        if old is not None:
            return replace(new, created_at=old.created_at), old.package == new.package
        write_manifest(self._out, new)
        return new, True


def plan_manifest(order: Order, benchmark: Benchmark) -> Manifest:
    """The manifest of the run that is ordered, as it is before the first call."""
    fingerprints = benchmark[order.selection.split].fingerprints()
    return Manifest(
        benchmark=str(order.benchmark),
        fingerprint=fingerprints.whole,
        text_fingerprint=fingerprints.texts,
        selection=order.selection,
        task=order.task,
        model=order.model,
        base_urls=order.base_urls,
        condition=order.condition,
        condition_label=order.condition.label(),
        prompts={str(kind): version for kind, version in prompt_versions(order.task, order.condition).items()},
        created_at=now_utc(),
    )


def find_earlier(out: Path, new: Manifest) -> Manifest | None:
    """The manifest of the run that is continued, if there is one; LedgerError when it is another run."""
    if not (out / "run.json").exists():
        return None
    old = read_manifest(out)
    refuse_other_run(old, new, out)
    return old


def write_results(out: Path, manifest: Manifest, ledger: Ledger, total: int) -> None:
    """Write predictions, index and manifest from the ledger: the same ledger, the same bytes."""
    write_atomic(out / PREDICTIONS_FILE, (body + b"\n" for body in ledger.predictions()))
    write_index(out)
    write_manifest(out, replace(manifest, progress=summarise(ledger, total)))


def summarise(ledger: Records, total: int) -> Progress:
    """How far the run came, read off its ledger."""
    totals, span = ledger.totals(), ledger.span()
    states, doubts = ledger.prediction_states(), count_image_doubts(ledger)
    return Progress(
        cases=total,
        states=states,
        calls={str(state): count for state, count in totals.calls.items()},
        attempts=totals.attempts,
        image_replies=doubts.replies,
        image_doubts=doubts.doubtful,
        cost_usd=totals.cost_usd,
        reported_models=ledger.reported_models(),
        first_call_at=span[0],
        last_call_at=span[1],
        is_complete=sum(states.values()) == total,
    )


def make_folder(out: Path) -> None:
    """Make the run's folder, or raise LedgerError when it holds something else."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(f"{out}: cannot be made: {error.strerror}", remedy="choose another --out") from None
    strange = [path.name for path in out.iterdir() if not (out / "run.json").exists() and path.name != ".lock"]
    if strange:
        raise LedgerError(f"{out} is not empty and no run: it holds {strange[0]}", remedy="choose another --out")
