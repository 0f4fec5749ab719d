"""What an odd server's replies cost, on record: never less than it was paid for, and no more attempts than needed."""

import asyncio

import pytest
from fault_server import FaultServer

from medthink.models import Request, Schema, TextPart
from medthink.models.limits import Backoff
from medthink.models.prices import Price
from medthink.models.transport import Transport
from medthink.runs.calls.answerers import ModelAnswerer
from medthink.runs.calls.asking import CallFailed, LedgerCallMaker
from medthink.runs.calls.budget import Budget, BudgetReached
from medthink.runs.ledger.ledger import Ledger

PRICE = Price(input=1.0, output=10.0)
FORM = Schema(
    "reading",
    {"type": "object", "properties": {"answer": {"type": "string", "enum": ["A", "B"]}}, "required": ["answer"]},
)
MAX_TOKENS = 1_000
OUTPUT = 20
# The fault of every attempt; how the call ends, after how many attempts, and how many of them nobody counted.
ODD = [
    ("", "answered", 1, 0),
    ("bom", "answered", 1, 0),
    ("one-event", "answered", 1, 0),
    ("line-twice", "answered", 1, 0),
    ("half-character", "answered", 1, 0),
    ("eos", "answered", 1, 0),
    ("null-stop", "answered", 1, 0),
    ("think", "answered", 1, 0),
    ("reasoning-beside", "answered", 1, 0),
    ("no-usage", "answered", 1, 1),
    ("zero-usage", "answered", 1, 1),
    ("total-alone", "answered", 1, 1),
    ("tool-call", "no_answer", 2, 0),
    ("think-alone", "no_answer", 2, 0),
    ("invalid-json", "invalid_json", 3, 0),
    ("two-answers", "invalid_reply", 4, 4),
    ("stream", "invalid_reply", 4, 4),
    ("html", "invalid_reply", 4, 4),
    ("empty", "invalid_reply", 4, 4),
    ("error-inside", "server", 6, 6),
    ("truncated-body", "connection", 6, 6),
    ("500", "server", 6, 0),
    ("400", "bad_request", 1, 0),
]


class Asked:
    kind = "answer"


def ask(place, servers, *, max_usd=None):
    """One call to these servers; returns how it ended, what it cost, and the most that an attempt may cost."""

    async def scene():
        for server in servers:
            await server.start()
        answerer = ModelAnswerer(
            "server/m", base_urls=tuple(f"{server.url}/v1" for server in servers),
            transport=Transport(backoff=Backoff(first_s=0.001, most_s=0.002)), price=PRICE,
        )  # fmt: skip
        ledger, request = Ledger(place / "ledger.sqlite"), Request(
            parts=(TextPart("What is it?"),), schema=FORM, max_tokens=MAX_TOKENS
        )  # fmt: skip
        try:
            desk = LedgerCallMaker(answerer, ledger, Budget(max_usd=max_usd))
            try:
                await desk.call(Asked(), request, 1)
                end = "answered"
            except (CallFailed, BudgetReached):
                end = "failed"
            await ledger.wait_written()
            failures = ledger.failures()
            return failures[0][0] if failures else end, ledger.totals().spent, answerer.worst_cost_usd(request)
        finally:
            ledger.close()
            await answerer.close()
            for server in servers:
                await server.stop()

    return asyncio.run(scene())


@pytest.mark.parametrize(("fault", "end", "attempts", "uncounted"), ODD)
def test_every_odd_reply_costs_what_it_was_paid(tmp_path, fault, end, attempts, uncounted):
    server = FaultServer(script=[fault] * 20)
    ended, spent, worst_usd = ask(tmp_path, [server])
    assert (ended, len(server.records), spent.uncounted) == (end, attempts, uncounted)
    if uncounted:
        assert spent.cost_usd == pytest.approx(uncounted * worst_usd)
    elif fault in ("500", "400"):
        assert spent.cost_usd == 0, "a request that the server refused is not billed"
    else:
        # The server counts 50 tokens or more in, and 20 out.
        beside = 900 if fault == "reasoning-beside" else 0
        least = attempts * (50 * PRICE.input + (OUTPUT + beside) * PRICE.output) / 1e6
        assert least <= spent.cost_usd < attempts * worst_usd


def test_twelve_servers_are_paid_no_more_often_than_one(tmp_path):
    servers = [FaultServer(script=["html"] * 9) for _ in range(12)]
    ended, spent, worst_usd = ask(tmp_path, servers)
    assert ended == "invalid_reply" and sum(len(server.records) for server in servers) == 4
    assert spent == (pytest.approx(4 * worst_usd), 4)


def test_broken_bodies_before_a_good_one_count_against_the_budget(tmp_path):
    server = FaultServer(script=["html", "html", ""])
    _, spent, worst_usd = ask(tmp_path, [server], max_usd=2.5 * 0.0101)
    assert worst_usd == pytest.approx(0.0101, rel=0.01)
    assert len(server.records) == 2 and spent.uncounted == 2, "a third attempt does not fit"


def test_a_crowded_server_sends_the_call_to_an_idle_one(tmp_path):
    servers = [FaultServer(script=["429"] * 20), FaultServer()]
    ended, _, _ = ask(tmp_path, servers)
    assert ended == "answered" and len(servers[1].records) == 1 and len(servers[0].records) <= 1
