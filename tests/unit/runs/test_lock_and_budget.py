"""One process works on a run, and no run spends more than it may."""

import asyncio
import subprocess
import sys

import pytest

from medthink.cases.benchmark import Benchmark
from medthink.core.errors import LedgerError, UsageError
from medthink.models.prices import Charge
from medthink.models.request import Attempt, Usage
from medthink.runs.calls.answerers import open_answerer
from medthink.runs.calls.budget import Budget, BudgetReached
from medthink.runs.ledger.lock import lock_run
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from small_benchmark import write_benchmark

HOLDER = """
import sys, time
from pathlib import Path
from medthink.runs.ledger.lock import lock_run
with lock_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_process_is_refused_by_name_and_a_dead_ones_lock_is_taken_over(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LedgerError, match=f"in use by process {holder.pid}"), lock_run(tmp_path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with lock_run(tmp_path):
        pass


def reserve(budget, worst_usd, **options):
    """Reserve where nothing has to be waited for."""
    return asyncio.run(asyncio.wait_for(budget.reserve(worst_usd, **options), 120))


def test_calls_in_flight_count_at_their_worst_price_and_what_does_not_fit_waits():
    async def scene():
        budget = Budget(max_usd=1.0)
        first = await budget.reserve(0.4)
        await budget.reserve(0.4)
        third = asyncio.create_task(budget.reserve(0.4))
        await asyncio.sleep(0)
        assert not third.done()
        budget.settle(first, Charge(0.1))
        await third
        assert budget.spent_usd == pytest.approx(0.1)

    asyncio.run(scene())


def test_worst_cases_do_not_fill_a_limit_that_the_calls_would_keep():
    async def scene():
        budget = Budget(max_usd=2.0)

        async def call():
            held = await budget.reserve(0.5)
            await asyncio.sleep(0)
            budget.settle(held, Charge(0.004))

        await asyncio.gather(*(call() for _ in range(300)))
        assert budget.spent_usd == pytest.approx(1.2)

    asyncio.run(scene())


def test_estimates_learn_where_calls_cost_more_than_the_worst_case():
    budget = Budget(max_usd=1.0)
    budget.settle(reserve(budget, 0.1), Charge(0.4))
    budget.settle(reserve(budget, 0.1), Charge(0.4))
    with pytest.raises(BudgetReached, match=r"\$0\.80 spent, and the next may cost \$0\.40"):
        reserve(budget, 0.1)


def test_the_limit_is_passed_by_no_more_than_one_call_for_each_place():
    async def scene(places, cost, worst):
        budget, gate = Budget(max_usd=0.05), asyncio.Semaphore(places)

        async def call():
            async with gate:
                held = await budget.reserve(worst)
                await asyncio.sleep(0)
                budget.settle(held, Charge(cost))

        ends = await asyncio.gather(*(call() for _ in range(200)), return_exceptions=True)
        assert {type(end) for end in ends} == {type(None), BudgetReached}
        assert 0.05 - cost <= budget.spent_usd <= 0.05 + places * cost

    asyncio.run(scene(8, 0.004, 0.001))
    asyncio.run(scene(8, 0.001, 0.004))


def test_all_who_wait_are_told_when_the_limit_is_reached():
    async def scene():
        budget = Budget(max_usd=1.0)
        held = await budget.reserve(0.9)
        waiting = [asyncio.create_task(budget.reserve(0.9)) for _ in range(3)]
        await asyncio.sleep(0)
        budget.settle(held, Charge(0.9))
        ends = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 120)
        assert [type(end) for end in ends] == [BudgetReached] * 3

    asyncio.run(scene())


def test_the_limit_on_calls_counts_earlier_sessions_and_no_retries():
    budget = Budget(max_calls=3, calls=2)
    reserve(budget, None)
    reserve(budget, None, is_retry=True)
    with pytest.raises(BudgetReached, match="--max-calls"):
        reserve(budget, None)


def test_a_money_limit_needs_a_price():
    with pytest.raises(UsageError, match="price"):
        reserve(Budget(max_usd=1.0), None)


def test_an_attempt_that_nobody_counted_stands_at_its_worst_and_teaches_nothing():
    budget = Budget(max_usd=1.0)
    budget.settle(reserve(budget, 0.5), Charge(0.1))
    budget.settle(reserve(budget, 0.5), Charge(0.5, is_least=True))
    held = reserve(budget, 0.5)
    assert held.expected_usd == pytest.approx(0.1)
    budget.settle(held, Charge(0.3, is_least=True))
    with pytest.raises(BudgetReached, match=r"0\.90 spent"):
        reserve(budget, 0.6)


def test_what_calls_without_a_price_cost_is_not_known():
    budget = Budget(max_calls=2)
    budget.settle(reserve(budget, None), Charge(None))
    assert budget.spent_usd is None


def test_what_was_given_back_costs_nothing_and_is_no_call():
    budget = Budget(max_usd=1.0, max_calls=2)
    budget.settle(reserve(budget, 0.5), Charge(0.125))
    for _ in range(3):
        budget.give_back(reserve(budget, 0.5))
    assert (budget.calls, budget.spent_usd) == (1, 0.125)
    reserve(budget, 0.5)


def test_a_money_limit_needs_to_know_what_was_spent_before():
    with pytest.raises(UsageError, match="earlier calls"):
        reserve(Budget(max_usd=1.0, spent_usd=None), 0.1)
    reserve(Budget(spent_usd=None), 0.1)


def test_a_money_limit_that_is_no_number_is_reached_at_once():
    with pytest.raises(BudgetReached):
        reserve(Budget(max_usd=float("nan")), 0.1)


def test_exactly_the_limit_may_be_spent():
    budget = Budget(max_usd=0.5)
    budget.settle(reserve(budget, 0.25), Charge(0.25))
    budget.settle(reserve(budget, 0.25), Charge(0.25))
    with pytest.raises(BudgetReached):
        reserve(budget, 0.25)


class Flaky:
    """A model whose replies cost a dollar each; only the last of the attempts at each call can be read."""

    concurrency = 32

    def __init__(self, bench, attempts):
        self._inner = open_answerer("baseline/retrieval", benchmark=Benchmark.open(bench))
        self._attempts = attempts
        self.paid = 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def worst_cost_usd(self, request):
        return 1.0

    def cost_usd(self, usage):
        return 1.0

    async def answer(self, prompt, request, log):
        for number in range(1, self._attempts + 1):
            if number > 1:
                await log.again()
            await asyncio.sleep(0)
            self.paid += 1
            outcome = "ok" if number == self._attempts else "invalid_json"
            log.note(
                Attempt(number=number, endpoint="", outcome=outcome, is_sent=True, latency_s=0.0, usage=Usage(1, 0, 1))
            )
        return await self._inner.answer(prompt, request, log)


@pytest.mark.parametrize(
    ("attempts", "task", "max_usd", "least_done"), [(1, "answer", 32, 32), (2, "answer", 32, 16), (1, "twi", 40, 9)]
)
def test_a_small_budget_ends_in_finished_cases(tmp_path, attempts, task, max_usd, least_done):
    bench = write_benchmark(tmp_path / "bench", cases=60)
    model = Flaky(bench, attempts)
    spec = RunSpec(
        benchmark=bench, model="baseline/retrieval", out=tmp_path / "run", task=task, max_usd=max_usd, preflight=False
    )
    session = run_session(spec, answerer=model)
    assert isinstance(session.stopped_by, BudgetReached) and model.paid == max_usd
    assert session.run.manifest.progress.states["ok"] >= least_done


def test_a_limit_of_calls_ends_in_finished_cases(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=60)
    spec = RunSpec(
        benchmark=bench, model="baseline/retrieval", out=tmp_path / "run", task="twi", max_calls=40, preflight=False
    )
    session = run_session(spec, answerer=Flaky(bench, 1))
    assert session.calls_made == 40 and session.run.manifest.progress.states["ok"] >= 9
