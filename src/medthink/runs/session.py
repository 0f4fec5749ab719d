"""One session of a run: open or continue it, make the remaining calls, write the results."""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from medthink import __version__
from medthink.cases.benchmark import Benchmark, Fingerprints
from medthink.core.errors import MedThinkError, UsageError
from medthink.core.files import claim_folder, write_atomic
from medthink.core.numbers import as_usd, count_of
from medthink.runs.batches.jobs import Batch
from medthink.runs.batches.queue import FOLDER
from medthink.runs.calls.answerers import Answerer, open_answerer, refuse_unfit
from medthink.runs.calls.asking import LedgerCallMaker, settings_test_request
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.calls.opening import Calls, SweepShared, open_calls
from medthink.runs.earlier import begin_manifest, is_done, is_finished, plan_manifest, refuse_lost, resolve_manifest
from medthink.runs.engine import Engine, StoppingRule, run_to_end
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.lock import lock_run
from medthink.runs.ledger.queries import LEDGER
from medthink.runs.manifest import Manifest, RunSpec, read_manifest, write_manifest
from medthink.runs.progress import LIVE, ProgressTracker, RunListener
from medthink.runs.run import Run, summarise, write_results
from medthink.runs.selection import (
    DEFAULT_SPLIT,
    Selection,
    count_cases,
    select_cases,
    select_from,
)
from medthink.runs.survey import PinnedImages, Survey, SurveyBeside, survey, write_digests
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import count_calls, default_condition, find_task, prompt_versions
from medthink.workflow.view import show_under_condition

if TYPE_CHECKING:
    from medthink.models.transport import Transport


def make_folder(out: Path) -> None:
    """Make the run's folder, or raise UsageError if it contains something else."""
    claim_folder(out, "run.json", passing=(LIVE,))


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


class _Known:
    """What is known of a run while it works; a survey made beside it fills in the rest."""

    def __init__(self, manifest: Manifest, total: int, pins: PinnedImages, *, is_kept: bool = True) -> None:
        self.manifest = manifest
        self.total = total
        self.pins = pins
        self.is_kept = is_kept


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
        self._tracker.counts.max_usd, self._tracker.counts.max_calls = spec.max_usd, spec.max_calls
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
            # What answers from afar is asked at once; a batch is sent when all is known, and so is a run continued.
            if answerer.is_remote and not spec.batch and not (self._out / "run.json").exists():
                return await self._work_in(self._begin(answerer))
            self._tracker.enter("fingerprinting")
            seen = survey(self._benchmark, spec.selection, task=spec.task, condition=spec.condition)
            self._tell_totals(seen)
            return await self._work_in(self._go_on(answerer, seen))
        finally:
            await answerer.close()

    async def _work_in(self, work: Coroutine[Any, Any, RunSession]) -> RunSession:
        """Do the work in the run's folder, under its lock."""
        with closing(work):
            make_folder(self._out)
            with lock_run(self._out):
                self._tracker.announce_in(self._out)
                self._tracker.say(
                    f"medthink {__version__}: {self._spec.model} · {self._spec.task} · {self._spec.condition.label()}"
                )
                try:
                    return await work
                except MedThinkError as error:
                    self._tracker.say(f"stopped: {error}")
                    raise
                finally:
                    self._tracker.leave()

    async def _begin(self, answerer: Answerer[Prompt]) -> RunSession:
        """A new run: its benchmark is surveyed while the first calls are made."""
        spec = self._spec
        total = self._expect_totals()
        manifest = plan_manifest(spec, Fingerprints("", ""))
        with SurveyBeside(self._benchmark, spec.selection, task=spec.task, condition=spec.condition) as beside:
            begin_manifest(self._out, manifest)
            return await self._ask(answerer, _Known(manifest, total, beside.pins), beside)

    async def _go_on(self, answerer: Answerer[Prompt], seen: Survey) -> RunSession:
        """A run whose benchmark has been surveyed, new or continued."""
        total = seen.cases * self._spec.condition.samples
        manifest, is_kept = resolve_manifest(self._spec, self._out, seen)
        if is_kept and self._rule is None and is_done(self._out, manifest, total):
            self._count_done(manifest)
            return RunSession(Run(self._out), 0, None, tuple(self._tracker.counts.warnings))
        return await self._ask(answerer, _Known(manifest, total, seen.pins, is_kept=is_kept))

    async def _ask(self, answerer: Answerer[Prompt], known: "_Known", beside: SurveyBeside | None = None) -> RunSession:
        """Make the calls that are left, and write the results."""
        spec, tracker = self._spec, self._tracker
        if spec.plan is not None:
            write_atomic(self._out / PLAN_FILE, [spec.plan.encode()])
        tracker.enter("preparing")
        with closing(Ledger(self._out / LEDGER, places=answerer.concurrency)) as ledger:
            refuse_lost(known.manifest, ledger.totals(), ledger.path)
            if known.manifest.progress is None:
                # However this session ends, existing results are marked as partial.
                write_manifest(self._out, replace(known.manifest, progress=summarise(ledger, known.total)))
            async with self._open_calls(answerer, ledger) as calls:
                (desk,) = calls.desks.values()
                engine = Engine(
                    self._task,
                    spec.condition,
                    desk=desk,
                    ledger=ledger,
                    benchmark=self._benchmark[spec.selection.split],
                    is_same_release=known.is_kept,
                    rule=self._rule,
                    pins=known.pins,
                )
                tracker.enter(answerer.first_phase)
                # However the run ends, its results so far can be read; the cause takes precedence over a full disk.
                problems: AbstractContextManager[None] = suppress(MedThinkError)
                ended_by: MedThinkError | None = None
                try:
                    work = calls.work(lambda: engine.run(select_cases(self._benchmark, spec.selection)))
                    stopped_by = await (work if beside is None else self._beside(beside, known, engine, work))
                    problems, ended_by = nullcontext(), stopped_by
                except MedThinkError as error:
                    ended_by = error
                    raise
                finally:
                    with problems:
                        tracker.enter("writing")
                        ledger.end_writing()
                        write_results(self._out, known.manifest, ledger, known.total, ended_by=ended_by)
            jobs = calls.jobs
        stopped_by = stopped_by and self._tell_rest(stopped_by, desk)
        return RunSession(Run(self._out), desk.made, stopped_by, tuple(tracker.counts.warnings), jobs)

    async def _beside(
        self,
        beside: SurveyBeside,
        known: "_Known",
        engine: Engine,
        work: Coroutine[Any, Any, BudgetReached | None],
    ) -> BudgetReached | None:
        """Do the work until it and the survey have ended; an error of either ends both."""
        try:
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(work)
                group.create_task(self._take_survey(beside, known, engine))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return asking.result()

    async def _take_survey(self, beside: SurveyBeside, known: "_Known", engine: Engine) -> None:
        """Fail the cases that were asked about other images, and only then pin the benchmark."""
        seen = await beside.wait()
        await engine.fail_strays()
        prints = {"fingerprint": seen.fingerprints.whole, "text_fingerprint": seen.fingerprints.texts}
        known.manifest, known.total = replace(known.manifest, **prints), seen.cases * self._spec.condition.samples
        self._correct_totals(seen)
        write_digests(self._out, seen.digests)
        write_manifest(self._out, replace(known.manifest, progress=read_manifest(self._out).progress))

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

    def _expect_totals(self) -> int:
        """Count the predictions; until the survey has counted calls, each case needs as many as the first."""
        spec = self._spec
        split, selection = self._benchmark[spec.selection.split], spec.selection
        is_plain = selection.cases is None and selection.shard is None
        cases = min(len(split), selection.limit or len(split)) if is_plain else count_cases(self._benchmark, selection)
        first = next(select_cases(self._benchmark, selection), None)
        counts, samples = self._tracker.counts, spec.condition.samples
        counts.predictions = cases * samples
        self._expected_calls = 0
        if first is not None:
            shown = show_under_condition(replace(spec.condition, swap_images=False), first.question).question
            self._expected_calls = cases * samples * count_calls(spec.task, spec.condition, len(shown.images))
        counts.calls = self._expected_calls
        return counts.predictions

    def _correct_totals(self, seen: Survey) -> None:
        counts, corrected = self._tracker.counts, self._tracker.counts.calls - self._expected_calls
        self._tell_totals(seen)
        counts.calls += corrected

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
