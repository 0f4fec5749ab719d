"""The engine: cases in, predictions in the ledger, with a bounded number in progress at any time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import takewhile
from typing import Protocol, TypeVar

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.runs.asking import CaseAsk, Deferred, Desk
from medthink.runs.budget import BudgetReached
from medthink.runs.ledger import Ledger
from medthink.runs.prediction import Prediction, make_prediction
from medthink.runs.showing import Showing
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import Task, count_calls

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
    """Takes cases through a task; storage, limits and money are handled by the desk."""

    def __init__(
        self,
        task: Task,
        condition: Condition,
        *,
        desk: Desk[Prompt],
        ledger: Ledger,
        benchmark: Benchmark,
        is_same_release: bool,
        rule: StoppingRule | None = None,
    ) -> None:
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
        """Take every case through the task; returns the budget limit that stopped it early, if any.

        A case waiting for a batch gets no prediction: the next pass starts it from its first step.
        """
        # Earlier good predictions stay, if this release would read the replies in the same way.
        self._kept = self._ledger.good_predictions() if self._is_same_release else frozenset()
        self._tracker.begin_pass()
        arranged = cases if self._rule is None else self._rule.arrange(cases)
        work = ((case, sample) for case in arranged for sample in range(self._condition.samples))
        wanted = takewhile(lambda _: self._rule is None or not self._rule.is_known, work)
        at_once = self._desk.answerer.concurrency
        return await work_through(wanted, self._predict, workers=at_once + min(_MOST_AHEAD, 1 + at_once // 4))

    async def _predict(self, work: tuple[Case, int]) -> None:
        case, sample = work
        if (case.id, sample) in self._kept:
            kept = self._ledger.prediction(case.id, sample)
            self._tracker.counts.kept += count_calls(self._task.name, self._condition, len(kept.slots))
            self._see(kept, is_kept=True)
            return
        shown, cues = self._showing.show(case)
        ask = CaseAsk(self._desk, self._condition, case_id=case.id, sample=sample)
        outcome = await self._task.run(shown.question, cues, ask, self._condition)
        prediction = make_prediction(case, sample, shown, outcome, ask.spent)
        await self._ledger.save_prediction(
            case.id, sample, state=prediction.state, body=msgspec.json.encode(prediction)
        )
        # A case that ended early asked less than was expected of it.
        expected = count_calls(self._task.name, self._condition, len(shown.question.images))
        self._tracker.counts.calls += ask.asked - expected
        self._see(prediction)

    def _see(self, prediction: Prediction, *, is_kept: bool = False) -> None:
        self._tracker.see(prediction, is_kept=is_kept)
        if self._rule is not None:
            self._rule.see(prediction)


async def work_through(
    work: Iterable[Work], handle: Callable[[Work], Awaitable[None]], *, workers: int
) -> BudgetReached | None:
    """Process everything with this many workers; when the budget is reached, finish calls in progress and stop.

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
