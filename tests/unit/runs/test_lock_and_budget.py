"""One process works on a run, and no run spends more than it may."""

import subprocess
import sys

import pytest

from medthink.core.errors import LedgerError, UsageError
from medthink.runs.budget import Budget, BudgetReached
from medthink.runs.lock import hold

HOLDER = """
import sys, time
from pathlib import Path
from medthink.runs.lock import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_by_name_and_a_dead_ones_lock_is_taken_over(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LedgerError, match=f"in use by process {holder.pid}"), hold(tmp_path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with hold(tmp_path):
        pass


def test_calls_in_flight_count_at_their_worst_price():
    budget = Budget(max_usd=1.0)
    first = budget.reserve(0.4)
    budget.reserve(0.4)
    with pytest.raises(BudgetReached):
        budget.reserve(0.4)
    budget.settle(first, 0.1)
    budget.reserve(0.4)
    assert budget.spent_usd == pytest.approx(0.1)


def test_the_limit_on_calls_counts_earlier_sessions():
    budget = Budget(max_calls=3, calls=2)
    budget.reserve(None)
    with pytest.raises(BudgetReached, match="--max-calls"):
        budget.reserve(None)


def test_a_money_limit_needs_a_price():
    with pytest.raises(UsageError, match="price"):
        Budget(max_usd=1.0).reserve(None)


def test_a_call_whose_cost_is_not_known_counts_as_what_was_set_aside():
    budget = Budget(max_usd=1.0)
    budget.settle(budget.reserve(0.6), None)
    with pytest.raises(BudgetReached, match=r"0\.6000 spent"):
        budget.reserve(0.6)


def test_a_money_limit_needs_to_know_what_was_spent_before():
    with pytest.raises(UsageError, match="earlier calls"):
        Budget(max_usd=1.0, spent_usd=None).reserve(0.1)
    Budget(spent_usd=None).reserve(0.1)


def test_a_money_limit_that_is_no_number_is_reached_at_once():
    with pytest.raises(BudgetReached):
        Budget(max_usd=float("nan")).reserve(0.1)


def test_exactly_the_limit_may_be_spent():
    budget = Budget(max_usd=0.5)
    budget.settle(budget.reserve(0.25), 0.25)
    budget.settle(budget.reserve(0.25), 0.25)
    with pytest.raises(BudgetReached):
        budget.reserve(0.25)
