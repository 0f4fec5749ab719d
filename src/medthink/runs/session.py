"""One session of a run: open or continue it, make the remaining calls, write the results."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from medthink.cases.benchmark import Benchmark, Fingerprints
from medthink.core.clock import now_utc
from medthink.core.digest import digest_file
from medthink.core.errors import MedThinkError, UsageError
from medthink.core.files import claim_folder, write_atomic
from medthink.core.numbers import as_usd, count_of
from medthink.models.catalog import PROVIDERS
from medthink.models.image_detail import settle_detail
from medthink.runs.batches.jobs import Batch
from medthink.runs.batches.queue import FOLDER
from medthink.runs.calls.answerers import Answerer, open_answerer, refuse_unfit
from medthink.runs.calls.asking import LedgerCallMaker, settings_test_request
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.calls.opening import Calls, SweepShared, open_calls
from medthink.runs.engine import Engine, StoppingRule, run_to_end
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.lock import lock_run
from medthink.runs.ledger.queries import LEDGER, LedgerQueries, Totals, damaged
from medthink.runs.manifest import Amendment, Manifest, RunSpec, read_manifest, refuse_other_run, write_manifest
from medthink.runs.progress import LIVE, ProgressTracker, RunListener
from medthink.runs.run import PREDICTIONS_FILE, Run, is_settled, summarise, write_results
from medthink.runs.selection import (
    DEFAULT_SPLIT,
    Selection,
    Survey,
    find_changed,
    select_cases,
    select_from,
    survey,
    write_digests,
)
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import default_condition, find_task, prompt_versions

if TYPE_CHECKING:
    from medthink.models.transport import Transport


def make_folder(out: Path) -> None:
    """Make the run's folder, or raise UsageError if it contains something else."""
    claim_folder(out, "run.json", passing=(LIVE,))


def resolve_manifest(spec: RunSpec, out: Path, seen: Survey) -> tuple[Manifest, bool]:
    """The manifest of the run, new or continued, and whether everything so far was made by this release."""
    new = plan_manifest(spec, seen.fingerprints)
    old = find_earlier(out, new, seen.digests)
    if old is not None:
        kept = {"created_at": old.created_at, "condition_label": old.condition_label, "progress": old.progress}
        new = replace(new, amendments=_amend(old, new), **kept)
        if new.fingerprint != old.fingerprint:
            write_digests(out, seen.digests)
            write_manifest(out, new)
        return new, old.package == new.package
    for name in (LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", PREDICTIONS_FILE):
        (out / name).unlink(missing_ok=True)  # of a run that nothing answered
    write_manifest(out, new)
    write_digests(out, seen.digests)
    return new, True


def plan_manifest(spec: RunSpec, fingerprints: Fingerprints) -> Manifest:
    """The manifest of the run before its first call."""
    made = Manifest(
        benchmark=str(spec.benchmark),
        fingerprint=fingerprints.whole,
        text_fingerprint=fingerprints.texts,
        selection=spec.selection,
        task=spec.task,
        model=spec.model,
        base_urls=spec.base_urls,
        condition=spec.condition,
        condition_label=spec.condition.label(),
        image_detail=_chosen_detail(spec),
        prompts={str(kind): version for kind, version in prompt_versions(spec.task, spec.condition).items()},
        created_at=now_utc(),
    )
    return made if spec.out is None else made.on(spec.benchmark, spec.out)


def _chosen_detail(spec: RunSpec) -> str:
    """The level of image detail that a provider is sent where the condition names none."""
    provider, _, name = spec.model.partition("/")
    is_asked = provider in PROVIDERS and spec.condition.image_share > 0 and spec.condition.image_detail is None
    return settle_detail(None, provider, name) or "" if is_asked else ""


def find_earlier(out: Path, new: Manifest, digests: dict[int, str]) -> Manifest | None:
    """The manifest of the run to continue, if there is one; LedgerError if it is another run.

    A changed benchmark is accepted if the change affects only cases without an answered call.
    """
    if not (out / "run.json").exists():
        return None
    old = read_manifest(out)
    if old.identity() != new.identity() and _is_blank(out):
        return None
    changed = find_changed(out, digests)
    is_open = old.fingerprint != new.fingerprint and _is_open_to(out, new, changed)
    compared = replace(new, fingerprint=old.fingerprint, text_fingerprint=old.text_fingerprint) if is_open else new
    refuse_other_run(old, compared, out, changed)
    return old


def _is_blank(out: Path) -> bool:
    """Whether nothing in the run was answered or paid for: another run may be started in its place."""
    if not (out / LEDGER).is_file():
        return True
    with closing(LedgerQueries.open(out)) as records:
        totals = records.totals()
    # Without a price, only what was billed for sure or perhaps is known.
    return set(totals.calls) <= {"failed"} and not totals.spent.cost_usd and not totals.spent.uncounted


def _is_open_to(out: Path, new: Manifest, changed: set[int] | None) -> bool:
    """Whether no answered call of the run involves the changed cases."""
    if changed is None or not (out / LEDGER).is_file():
        return False
    with closing(LedgerQueries.open(out)) as records:
        answered = records.answered_cases()
    # With swapped images, a changed case also appears in the prompts of others.
    return not answered if new.condition.swap_images else not (answered & changed)


def _amend(old: Manifest, new: Manifest) -> tuple[Amendment, ...]:
    """The changes of the benchmark during the run, including this one if any."""
    if old.fingerprint == new.fingerprint:
        return old.amendments
    return (*old.amendments, Amendment(at=now_utc(), fingerprint=old.fingerprint))


def refuse_lost(manifest: Manifest, totals: Totals, ledger: Path) -> None:
    """Raise LedgerError if recorded calls are missing: making them again would mean paying again."""
    before = sum(manifest.progress.calls.values()) if manifest.progress else 0
    if sum(totals.calls.values()) < before:
        raise damaged(ledger, f"it holds {sum(totals.calls.values())} calls, and run.json counts {before}")


def is_finished(out: Path) -> bool:
    """Whether the run exists and no call is left to make."""
    if not (out / "run.json").exists():
        return False
    progress = read_manifest(out).progress
    return progress is not None and progress.is_complete and not progress.calls.get("failed")


def _is_done(out: Path, manifest: Manifest, total: int) -> bool:
    """Whether a session would change nothing: no case failed, and all that the ledger holds is written."""
    progress = manifest.progress
    if progress is None or progress.cases != total or progress.states.get("failed") or not is_finished(out):
        return False
    is_whole = is_settled(out, manifest) and (out / LEDGER).is_file()
    return is_whole and digest_file(out / PREDICTIONS_FILE) == progress.predictions_digest


PLAN_FILE = "plan.toml"


class SessionLimits(TypedDict, total=False):
    """A run's limits and prices, and whether the server is checked first and every image hashed again."""

    max_usd: float | None
    max_calls: int | None
    prices: Path | None
    price: str | None
    preflight: bool
    rehash: bool


class RunSession(msgspec.Struct, frozen=True):
    """The result of a session: the run, the calls it made, what stopped it early, if anything, and warnings.

    `jobs` are the batches its calls are waiting in.
    """

    run: Run
    calls_made: int
    stopped_by: BudgetReached | None
    warnings: tuple[str, ...] = ()
    jobs: tuple[Batch, ...] = ()


def run_session(
    spec: RunSpec,
    *,
    transport: "Transport | None" = None,
    listener: RunListener | None = None,
    rule: StoppingRule | None = None,
    answerer: Answerer[Prompt] | None = None,
) -> RunSession:
    """Make or continue the run; also works inside a notebook, where an event loop is already running.

    `answerer` replaces the model that the spec names.
    """
    return run_to_end(run_session_async(spec, transport=transport, listener=listener, rule=rule, answerer=answerer))


async def run_session_async(
    spec: RunSpec,
    *,
    transport: "Transport | None" = None,
    listener: RunListener | None = None,
    common: SweepShared | None = None,
    rule: StoppingRule | None = None,
    answerer: Answerer[Prompt] | None = None,
) -> RunSession:
    """Make or continue the run inside a running event loop.

    `common` is for the runs of a sweep, `rule` for a run that may end early.
    """
    if spec.out is None:
        raise UsageError("no folder was given for the run", remedy="give --out")
    return await _Worker(spec, spec.out, transport, listener, common, rule).work(answerer)


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
    **limits: Unpack[SessionLimits],
) -> Run:
    """Run a model over a benchmark from Python, as `medthink run` does from the shell; returns the run.

    If a benchmark object is passed, its split and the cases it keeps become the run's selection. Fields that the
    condition leaves open take the task's defaults. A run stopped by `max_usd` or `max_calls` is returned too; see its
    `manifest.progress.is_complete`.
    """
    spec = RunSpec(
        benchmark=benchmark.path if isinstance(benchmark, Benchmark) else Path(benchmark),
        model=model,
        out=Path(out),
        task=task,
        condition=condition or default_condition(task),
        selection=_selection_of(benchmark, selection),
        base_urls=base_urls,
        **limits,
    )
    return run_session(spec, transport=transport).run


def _selection_of(benchmark: Benchmark | str | Path, selection: Selection | None) -> Selection:
    if isinstance(benchmark, Benchmark):
        return select_from(benchmark, selection)
    return selection or Selection(split=DEFAULT_SPLIT)


class _Worker:
    """The state of one session while it works."""

    def __init__(
        self,
        spec: RunSpec,
        out: Path,
        transport: "Transport | None",
        listener: RunListener | None,
        common: SweepShared | None,
        rule: StoppingRule | None,
    ) -> None:
        self._rule = rule
        self._spec = spec
        self._out = out
        self._transport = transport
        self._common = common
        self._tracker = ProgressTracker(listener)
        self._task = find_task(spec.task, spec.condition)
        self._benchmark = Benchmark.open(spec.benchmark).remembering(rehash=spec.rehash)

    async def work(self, answerer: Answerer[Prompt] | None = None) -> RunSession:
        """Run the session under the run's lock."""
        spec = self._spec
        answerer = answerer or open_answerer(
            spec.model,
            benchmark=self._benchmark,
            base_urls=spec.base_urls,
            transport=self._transport,
            prices=spec.price_source,
            is_batch=spec.batch,
        )
        try:
            await self._check(answerer)
            self._tracker.enter("fingerprinting")
            seen = survey(self._benchmark, spec.selection, task=spec.task, condition=spec.condition)
            self._tell_totals(seen)
            make_folder(self._out)
            with lock_run(self._out):
                self._tracker.announce_in(self._out)
                try:
                    return await self._work_with(answerer, seen)
                finally:
                    self._tracker.leave()
        finally:
            await answerer.close()

    async def _work_with(self, answerer: Answerer[Prompt], seen: Survey) -> RunSession:
        spec = self._spec
        tracker = self._tracker
        total = seen.cases * spec.condition.samples
        manifest, is_same_release = resolve_manifest(spec, self._out, seen)
        if is_same_release and self._rule is None and _is_done(self._out, manifest, total):
            self._count_done(manifest)
            return RunSession(Run(self._out), 0, None, tuple(tracker.counts.warnings))
        if spec.plan is not None:
            write_atomic(self._out / PLAN_FILE, [spec.plan.encode()])
        tracker.enter("preparing")
        with closing(Ledger(self._out / LEDGER, places=answerer.concurrency)) as ledger:
            refuse_lost(manifest, ledger.totals(), ledger.path)
            if manifest.progress is None:
                # However this session ends, existing results are marked as partial.
                write_manifest(self._out, replace(manifest, progress=summarise(ledger, total)))
            async with self._open_calls(answerer, ledger) as calls:
                (desk,) = calls.desks.values()
                engine = Engine(
                    self._task,
                    spec.condition,
                    desk=desk,
                    ledger=ledger,
                    benchmark=self._benchmark[spec.selection.split],
                    is_same_release=is_same_release,
                    rule=self._rule,
                    pins=seen.pins,
                )
                tracker.enter(answerer.first_phase)
                # However the run ends, its results so far can be read; the cause takes precedence over a full disk.
                problems: AbstractContextManager[None] = suppress(MedThinkError)
                ended_by: MedThinkError | None = None
                try:
                    stopped_by = await calls.work(lambda: engine.run(select_cases(self._benchmark, spec.selection)))
                    problems, ended_by = nullcontext(), stopped_by
                except MedThinkError as error:
                    ended_by = error
                    raise
                finally:
                    with problems:
                        tracker.enter("writing")
                        ledger.end_writing()
                        write_results(self._out, manifest, ledger, total, ended_by=ended_by)
            jobs = calls.jobs
        stopped_by = stopped_by and self._tell_rest(stopped_by, desk)
        return RunSession(Run(self._out), desk.made, stopped_by, tuple(tracker.counts.warnings), jobs)

    def _count_done(self, manifest: Manifest) -> None:
        counts, progress = self._tracker.counts, manifest.progress
        assert progress is not None
        counts.states.update(progress.states)
        counts.kept = counts.calls = progress.calls.get("done", 0)
        counts.cost_usd, counts.is_least_cost = progress.cost_usd, progress.is_least_cost

    def _open_calls(self, answerer: Answerer[Prompt], ledger: Ledger) -> AbstractAsyncContextManager[Calls[Prompt]]:
        return open_calls(
            [answerer],
            ledger,
            self._spec,
            spools=self._out / FOLDER,
            tracker=self._tracker,
            transport=self._transport,
            common=self._common,
            is_checked=True,
        )

    async def _check(self, answerer: Answerer[Prompt]) -> None:
        """The preflight: before the first call, and before any waiting, find problems that would fail every call."""
        refuse_early(self._spec, answerer)
        condition = self._spec.condition
        if condition.samples > 1 and condition.temperature == 0:
            self._tracker.warn(
                f"--samples {condition.samples} at temperature 0: the answers to a case may be all the same"
            )
        answerer.on_wait(lambda detail: self._tracker.enter("waiting", detail))
        if not self._spec.preflight or is_finished(self._out):
            return
        self._tracker.enter("checking")
        for problem in await answerer.check():
            self._tracker.warn(problem)

    def _tell_rest(self, stop: BudgetReached, desk: LedgerCallMaker[Prompt]) -> BudgetReached:
        """The limit reached, with the final sum now that nothing is in flight, and what is left to do."""
        counts, spent = self._tracker.counts, desk.budget.spent_usd
        told = as_usd(spent, is_least=counts.is_least_cost)
        sum_spent = "" if spent is None else f"; {told} spent in {count_of(desk.budget.calls, 'call')}"
        left = counts.predictions - counts.predicted
        problem = f"{stop.problem}{sum_spent}; {left} of {counts.predictions} predictions left to do"
        return BudgetReached(problem, remedy=stop.remedy)

    def _tell_totals(self, seen: Survey) -> None:
        counts, samples = self._tracker.counts, self._spec.condition.samples
        counts.predictions, counts.calls = seen.cases * samples, seen.calls * samples
        if seen.missing_images:
            self._tracker.warn(f"{seen.missing_images:,} of {seen.images:,} images are missing: their cases will fail")


def refuse_early(spec: RunSpec, answerer: Answerer[Prompt]) -> None:
    """Raise UsageError for anything unsupported that can be detected without a server."""
    kinds = prompt_versions(spec.task, spec.condition)
    example, has_options = settings_test_request(spec.condition), spec.condition.show_options
    refuse_unfit(answerer, example, kinds, has_options=has_options, max_usd=spec.max_usd)
