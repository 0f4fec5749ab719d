"""Whatever happens to attempts, the sum on record is at least what a server that counts has billed."""

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from medthink.models.request import Attempt, ModelError, Reply, Usage
from medthink.runs.calls.answerers import NoPreflight
from medthink.runs.calls.asking import LedgerCallMaker, SharedCalls, settings_test_request
from medthink.runs.calls.budget import Budget
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.queries import LEDGER, LedgerQueries
from medthink.runs.sweep import total_paid
from medthink.workflow.condition import Condition

WORST_USD = 1.0
RUNS = ("one", "two")


class Killed(Exception):
    """The process died."""


class Asked:
    kind = "answer"


class CountingServer(NoPreflight):
    """Bills every attempt that it answers, and knows the sum; what arrives of an answer is another matter."""

    spec, concurrency, first_phase, is_remote = "server/m", 4, "asking", True

    def __init__(self) -> None:
        self.billed_usd = 0.0
        self.script: list[tuple[str, float]] = []

    async def answer(self, prompt, request, log):
        number = 0
        while True:
            what, share = self.script.pop(0) if self.script else ("ok", 0.5)
            if number:
                await log.again()
            number += 1
            if what not in ("busy", "unsent"):
                self.billed_usd += share * WORST_USD
            await asyncio.sleep(0)
            if what in ("killed", "killed-waiting"):
                if what == "killed-waiting":
                    log.note(self._attempt(number, "invalid_json", share))
                raise Killed
            if what in ("stopped", "stopped-waiting"):
                outcome = "cancelled" if what == "stopped" else "invalid_json"
                log.note(self._attempt(number, outcome, share if what == "stopped-waiting" else None))
                raise asyncio.CancelledError
            log.note(self._noted(number, what, share))
            if what == "ok":
                return Reply(text="A", usage=_usage(share))
            if what == "given-up":
                raise ModelError("invalid_json", "{", usage=_usage(share))

    def _noted(self, number, what, share):
        if what in ("ok", "given-up", "unusable"):
            return self._attempt(number, {"ok": "ok"}.get(what, "invalid_json"), share)
        outcome = {"unreadable": "invalid_reply", "lost": "timeout", "busy": "rate_limit", "unsent": "connection"}[what]
        return self._attempt(number, outcome, None, is_sent=what != "unsent", is_billed=what in ("unreadable", "lost"))

    def _attempt(self, number, outcome, share, *, is_sent=True, is_billed=True):
        usage = None if share is None else _usage(share)
        return Attempt(
            number=number, endpoint="", outcome=outcome, is_sent=is_sent, latency_s=0.0, is_billed=is_billed,
            usage=usage,
        )  # fmt: skip

    def cost_usd(self, usage):
        return usage.input / 1000 * WORST_USD

    def worst_cost_usd(self, request):
        return WORST_USD


def _usage(share: float) -> Usage:
    return Usage(input=round(share * 1000))


async def session(folder: Path, server: CountingServer, cases: list[int]) -> float:
    """A session of one run; returns what its budget says was spent in all."""
    ledger = Ledger(folder / LEDGER, places=server.concurrency)
    budget = Budget(spent_usd=ledger.totals().own.cost_usd)
    with closing(SharedCalls([folder.parent / name for name in RUNS if name != folder.name])) as siblings:
        desk = LedgerCallMaker(server, ledger, budget, siblings=siblings)
        try:
            for case in cases:
                try:
                    await desk.call(Asked(), settings_test_request(Condition()), case)
                except ModelError:
                    break
                except Exception as end:
                    if isinstance(end, Killed):
                        raise
        except Killed:
            ledger._failure = sqlite3.OperationalError("the process is gone")
        except asyncio.CancelledError:
            pass
        finally:
            await asyncio.sleep(0)
            ledger.close()
    return budget.spent_usd or 0.0


OUTCOMES = (
    "ok", "unusable", "unreadable", "lost", "busy", "unsent", "given-up", "killed", "killed-waiting", "stopped",
    "stopped-waiting",
)  # fmt: skip
shares = st.integers(1, 1000).map(lambda share: share / 1000)
sessions = st.tuples(
    st.sampled_from(RUNS), st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(OUTCOMES), shares), max_size=6),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(sessions, min_size=1, max_size=4))
def test_the_sum_is_never_below_the_invoice(history):
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / name for name in RUNS]
        for folder in folders:
            folder.mkdir()
        server = CountingServer()
        for name, cases, script in history:
            server.script = list(script)
            asyncio.run(session(Path(place) / name, server, cases))
            paid = total_paid(folders)
            assert paid.spent.cost_usd >= server.billed_usd - 1e-9
            server.script = []
        known = {what for _, _, script in history for what, _ in script} <= {"ok", "unusable", "given-up", "busy"}
        if known:
            assert abs(paid.spent.cost_usd - server.billed_usd) < 1e-9 and paid.spent.uncounted == 0


def test_two_unusable_replies_and_then_ctrl_c_are_on_record(tmp_path):
    server = CountingServer()
    server.script = [("unusable", 1.0), ("stopped-waiting", 1.0)]
    run = tmp_path / "one"
    run.mkdir()
    asyncio.run(session(run, server, [1]))
    with closing(LedgerQueries.open(run)) as records:
        assert records.totals().spent == (2.0, 0)
        assert records.failures()[0][0] == "interrupted"


def test_a_killed_process_leaves_what_it_sent_at_its_worst_and_the_next_budget_begins_there(tmp_path):
    server = CountingServer()
    server.script = [("unusable", 0.5), ("killed", 0.25)]
    run = tmp_path / "one"
    run.mkdir()
    asyncio.run(session(run, server, [1]))
    with closing(LedgerQueries.open(run)) as records:
        assert records.totals().spent == (1.5, 1)
    assert asyncio.run(session(run, server, [1])) == 2.0


def test_a_shared_call_does_not_forget_the_attempts_that_failed_before(tmp_path):
    server = CountingServer()
    for name in RUNS:
        (tmp_path / name).mkdir()
    server.script = [("unusable", 1.0), ("unusable", 1.0), ("given-up", 1.0)]
    asyncio.run(session(tmp_path / "two", server, [1]))
    asyncio.run(session(tmp_path / "one", server, [1]))
    asyncio.run(session(tmp_path / "two", server, [1]))
    assert total_paid([tmp_path / name for name in RUNS]).spent == (3.5, 0)
    assert server.billed_usd == 3.5
