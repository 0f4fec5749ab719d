"""The engine: cases in, predictions in the ledger, with a bounded number in progress at any time."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import takewhile
from types import FrameType
from typing import Any, Protocol, TypeVar

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.models.catalog import least_cached
from medthink.runs.calls.asking import CaseAsk, Deferred, LedgerCallMaker
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.survey import CHANGED, PinnedImages
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction, make_prediction
from medthink.workflow.tasks import Task, count_calls
from medthink.workflow.view import Showing

Work = TypeVar("Work")
# Cases prepared while others wait for replies; each holds its images in memory.
_MOST_AHEAD = 16


class StoppingRule(Protocol):
    """A rule that may end a run before its last case."""

    @property
    def is_known(self) -> bool:
        """Whether no further case needs to be asked."""

    def arrange(self, cases: Iterable[Case]) -> Iterable[Case]:
        """The cases in the order to be asked."""

    def see(self, prediction: Prediction) -> None:
        """Add one more prediction, from this session or an earlier one."""


class Engine:
    """Takes cases through a task; storage, limits and money are handled by the call maker."""

    def __init__(
        self,
        task: Task,
        condition: Condition,
        *,
        desk: LedgerCallMaker[Prompt],
        ledger: Ledger,
        benchmark: Benchmark,
        is_same_release: bool,
        rule: StoppingRule | None = None,
        pins: PinnedImages,
    ) -> None:
        self._pins = pins
        self._rule = rule
        self._task = task
        self._condition = condition
        self._desk = desk
        self._ledger = ledger
        self._tracker = desk.tracker
        self._is_same_release = is_same_release
        self._kept: frozenset[tuple[int, int]] = frozenset()
        self._showing = Showing(condition, benchmark)

    async def run(self, cases: Iterable[Case]) -> BudgetReached | None:
        """Run the task for every case; returns the budget limit that stopped it early, if any.

        A case waiting for a batch gets no prediction: the next pass starts it from its first step.
        """
        # Earlier good predictions stay, if this release would read the replies in the same way.
        self._kept = self._ledger.good_predictions() if self._is_same_release else frozenset()
        self._tracker.begin_pass()
        arranged = cases if self._rule is None else self._rule.arrange(cases)
        samples = range(self._condition.samples)
        # One sample after another finds the beginning of its prompts in the provider's cache.
        in_turn = [samples] if least_cached(self._desk.answerer.spec) else [(sample,) for sample in samples]
        work = ((case, group) for case in arranged for group in in_turn)
        wanted = takewhile(lambda _: self._rule is None or not self._rule.is_known, work)
        at_once = self._desk.answerer.concurrency
        return await run_cases(wanted, self._predict_in_turn, workers=at_once + min(_MOST_AHEAD, 1 + at_once // 4))

    async def _predict_in_turn(self, work: tuple[Case, Iterable[int]]) -> None:
        case, samples = work
        for sample in samples:
            with suppress(Deferred):
                await self._predict((case, sample))

    async def _predict(self, work: tuple[Case, int]) -> None:
        case, sample = work
        if (case.id, sample) in self._kept:
            kept = self._ledger.prediction(case.id, sample)
            self._tracker.counts.kept += count_calls(self._task.name, self._condition, len(kept.slots))
            self._see(kept, is_kept=True)
            return
        shown, cues = self._showing.show(case)
        # A case that ended early asked less than was expected of it.
        expected = count_calls(self._task.name, self._condition, len(shown.question.images))
        with self._desk.begin(expected) as desk:
            ask = CaseAsk(desk, self._condition, case_id=case.id, sample=sample, pins=self._pins)
            outcome = await self._task.run(shown.question, cues, ask, self._condition)
        prediction = make_prediction(case, sample, shown, outcome, ask.spent)
        await self._save(prediction)
        if case.id in self._pins.strays:
            # Found since: the survey that was still under way ends beside the calls.
            prediction = await self._fail_stray(prediction)
        self._tracker.counts.calls += ask.asked - expected
        self._see(prediction)

    async def _save(self, prediction: Prediction) -> None:
        body = msgspec.json.encode(prediction)
        await self._ledger.save_prediction(prediction.case, prediction.sample, state=prediction.state, body=body)

    async def fail_strays(self) -> None:
        """Fail the finished cases that were asked about other images than the survey found."""
        for case_id in sorted(self._pins.strays):
            for made in self._ledger.predictions_of(case_id):
                await self._fail_stray(made)

    async def _fail_stray(self, made: Prediction) -> Prediction:
        """The case as failed, with what its calls have cost and nothing of what they said."""
        failed = Prediction(
            case=made.case,
            split=made.split,
            sample=made.sample,
            state="failed",
            detail=f"image: one of its images: {CHANGED}",
            slots=made.slots,
            calls=made.calls,
            tokens=made.tokens,
            cost_usd=made.cost_usd,
            latency_s=made.latency_s,
        )
        await self._save(failed)
        return failed

    def _see(self, prediction: Prediction, *, is_kept: bool = False) -> None:
        self._tracker.see(prediction, is_kept=is_kept)
        if self._rule is not None:
            self._rule.see(prediction)


async def run_cases(
    work: Iterable[Work], handle: Callable[[Work], Awaitable[None]], *, workers: int
) -> BudgetReached | None:
    """Process all cases with this many workers; when the budget is reached, finish calls in progress and stop.

    Deferred cases are left out.
    """
    source = iter(work)
    stops: list[BudgetReached] = []

    async def worker() -> None:
        for one in _until_stopped(source, stops):
            try:
                await handle(one)
            except BudgetReached as stop:
                stops.append(stop)
            except Deferred:
                continue

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
    except BaseExceptionGroup as failures:
        # One cause is enough to act on, and the command line can show it.
        raise failures.exceptions[0] from None
    return stops[0] if stops else None


def _until_stopped(source: Iterator[Work], stops: list[BudgetReached]) -> Iterator[Work]:
    while not stops and (one := next(source, None)) is not None:
        yield one


Result = TypeVar("Result")
# How long Ctrl-C waits for the loop to react.
_PATIENCE_S = 1.0
# How often a waiting loop looks for an interrupt that came without a signal.
_PULSE_S = 0.5
# Closing the terminal or a scheduler ending the job stops the work like Ctrl-C.
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work and return its result; inside a running loop, on a separate thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with _interrupts_heard() as is_ignored:
            return asyncio.run(_insist(work, is_ignored=is_ignored))
    return _run_aside(work)


@contextmanager
def _interrupts_heard() -> Iterator[bool]:
    """Have the loop install its handler of Ctrl-C, through which SIGTERM and SIGHUP end the work too.

    It does not where Ctrl-C is ignored, as in a command that a script starts with `&`; says whether that is so.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield False
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt work without a loop as Ctrl-C does; what is ignored stays ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


async def _insist(work: Coroutine[Any, Any, Result], *, is_ignored: bool) -> Result:
    _keep_awake(asyncio.get_running_loop())
    with _hard_interrupts(is_ignored=is_ignored):
        try:
            return await work
        except KeyboardInterrupt:
            # The loop raises it itself when the task ends this way; raising it twice would print a traceback.
            raise asyncio.CancelledError from None


def _keep_awake(loop: asyncio.AbstractEventLoop) -> None:
    """Wake the loop now and then: Ray cancels a task by an interrupt without a signal, which wakes nothing."""
    loop.call_later(_PULSE_S, _keep_awake, loop)


@contextmanager
def _hard_interrupts(*, is_ignored: bool) -> Iterator[None]:
    """Let Ctrl-C (unless it is ignored), SIGTERM and SIGHUP all end the work in the same way.

    Work that blocks the loop, such as training a baseline, is interrupted at once.
    """
    ask_to_stop = signal.getsignal(signal.SIGINT)  # the loop's default: it cancels the task at its next iteration
    has_timers = hasattr(signal, "setitimer")  # not on Windows
    if not has_timers or threading.current_thread() is not threading.main_thread() or not callable(ask_to_stop):
        yield
        return
    before = {number: signal.getsignal(number) for number in (*_STOPS, signal.SIGALRM)}
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for number in _STOPS:
        # What is ignored (nohup ignores SIGHUP) stays ignored.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _then_insist(ask_to_stop))
    if is_ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _then_insist(ask_to_stop: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
    loop = asyncio.get_running_loop()

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
        # A loop that reacts has been notified, and its clean-up (closing the ledger) must not be interrupted.
        loop.call_soon_threadsafe(signal.setitimer, signal.ITIMER_REAL, 0)
        ask_to_stop(number, frame)

    return interrupt


def _run_aside(work: Coroutine[Any, Any, Result]) -> Result:
    started: Future[asyncio.Task[Result]] = Future()

    async def begin() -> Result:
        task = asyncio.ensure_future(work)
        started.set_result(task)
        return await task

    with ThreadPoolExecutor(1) as aside:
        result = aside.submit(asyncio.run, begin())
        try:
            return result.result()
        except KeyboardInterrupt:
            # The thread is not notified, and leaving waits for the thread, so the work is told to stop.
            task = started.result()
            task.get_loop().call_soon_threadsafe(task.cancel)
            raise
