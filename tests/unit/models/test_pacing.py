"""Gate, rate window, endpoints and backoff, on a clock of our own."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.models import ModelError
from medthink.models.limits import WINDOW_S, Backoff, ConcurrencyLimit, Endpoints, RateWindow, next_step, next_wait_s


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        assert seconds > 0
        self.now += seconds
        await asyncio.sleep(0)


@given(
    limit=st.integers(1, 20),
    amounts=st.lists(st.integers(1, 25), min_size=1, max_size=40),
    pauses=st.lists(st.integers(0, 30), min_size=40, max_size=40),
)
def test_no_window_of_a_minute_holds_more_than_the_limit(limit, amounts, pauses):
    clock = Clock()
    window = RateWindow(limit, clock=clock, sleep=clock.sleep)
    spent = []

    async def scenario():
        for amount, pause in zip(amounts, pauses, strict=False):
            clock.now += pause
            await window.spend(amount)
            spent.append((clock.now, amount))

    asyncio.run(scenario())
    for index, (end, amount) in enumerate(spent):
        inside = sum(a for at, a in spent[: index + 1] if at > end - WINDOW_S)
        assert inside <= limit or inside == amount, "only a single amount above the limit may stand, and alone"


def test_waiting_is_no_longer_than_needed():
    clock = Clock()
    window = RateWindow(10, clock=clock, sleep=clock.sleep)

    async def scenario():
        entry = await window.spend(8)
        clock.now += 10
        entry.correct(4)  # it turned out cheaper
        await window.spend(6)
        assert clock.now == 1010.0
        await window.spend(1)
        assert clock.now == 1060.0

    asyncio.run(scenario())


def test_who_waits_is_woken_when_a_charge_falls():
    """Forty calls estimated at ten times their size need no more than one window."""

    async def scenario():
        window = RateWindow(100)

        async def call():
            entry = await window.spend(20)
            await asyncio.sleep(0.001)
            entry.correct(2)

        await asyncio.wait_for(asyncio.gather(*(call() for _ in range(40))), 30)

    asyncio.run(scenario())


def test_a_wait_for_the_window_can_be_cancelled():
    async def scenario():
        window = RateWindow(1)
        await window.spend(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(window.spend(1), 0.01)
        assert not window._turn.locked()

    asyncio.run(scenario())


def test_the_gate_halves_once_for_a_burst_and_creeps_back():
    async def scenario():
        gate = ConcurrencyLimit(8)
        tickets = [await gate.enter() for _ in range(8)]
        for ticket in tickets:
            gate.slow_down(ticket)
            gate.leave()
        assert gate.limit == 4
        gate.slow_down(await gate.enter())
        assert gate.limit == 2
        for _ in range(200):
            gate.speed_up()
        assert gate.limit == 8
        for _ in range(10):
            gate.slow_down(gate._era)
        assert gate.limit == 1, "never closed altogether"

    asyncio.run(scenario())


@given(seed=st.integers(0, 10_000))
def test_the_gate_never_overfills_nor_starves_under_cancellation(seed):
    chance = random.Random(seed)

    async def scenario():
        gate, most, done = ConcurrencyLimit(3), 0, 0

        async def work():
            nonlocal most, done
            ticket = await gate.enter()
            try:
                most = max(most, gate.in_flight)
                await asyncio.sleep(0)
                if chance.random() < 0.2:
                    gate.slow_down(ticket)
                else:
                    gate.speed_up()
                done += 1
            finally:
                gate.leave()

        tasks = [asyncio.create_task(work()) for _ in range(25)]
        for _ in range(6):
            await asyncio.sleep(0)
            chance.choice(tasks).cancel()
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 120)
        cancelled = sum(isinstance(result, asyncio.CancelledError) for result in results)
        assert most <= 3 and gate.in_flight == 0 and not gate._waiting
        assert len(results) - cancelled <= done

    asyncio.run(scenario())


def test_endpoints_least_in_flight_then_turn_by_turn():
    endpoints = Endpoints(("http://a", "http://b", "http://c"), clock=Clock())
    a, b, c = endpoints.all
    a.in_flight, b.in_flight, c.in_flight = 2, 0, 1
    assert endpoints.choose() is b
    b.in_flight = 1
    c.served = 5
    assert endpoints.choose() is b


def test_a_sick_endpoint_rests_longer_each_time_and_is_probed_once():
    clock = Clock()
    endpoints = Endpoints(("http://a", "http://b"), clock=clock)
    a, b = endpoints.all
    b.in_flight = 50
    endpoints.note_failure(a)
    assert endpoints.choose() is a, "one failure is no sickness"
    endpoints.note_failure(a)
    assert endpoints.choose() is b
    clock.now += 1.0
    assert endpoints.choose() is a, "rested"
    a.in_flight = 1
    assert endpoints.choose() is b, "one probe at a time"
    a.in_flight = 0
    endpoints.note_failure(a)
    clock.now += 1.0
    assert endpoints.choose() is b, "the second rest is longer"
    clock.now += 1.0
    endpoints.note_success(a)
    a.in_flight = 1
    assert endpoints.choose() is a


def test_when_all_are_sick_the_one_that_recovers_first_is_asked():
    clock = Clock()
    endpoints = Endpoints(("http://a", "http://b"), clock=clock)
    a, b = endpoints.all
    endpoints.note_wait(a, 5.0)
    endpoints.note_wait(b, 3.0)
    assert endpoints.choose() is b


def test_an_endpoint_that_failed_for_this_call_is_chosen_last():
    endpoints = Endpoints(("http://a", "http://b"), clock=Clock())
    a, b = endpoints.all
    b.in_flight = 50
    assert endpoints.choose({a}) is b
    assert endpoints.choose({a, b}) is a


def test_all_are_sick_until_one_recovers_or_answers():
    clock = Clock()
    endpoints = Endpoints(("http://a", "http://b"), clock=clock)
    a, b = endpoints.all
    for one in (a, a, b):
        endpoints.note_failure(one)
    assert not endpoints.are_all_sick and endpoints.down_for_s() == 0
    endpoints.note_failure(b)
    clock.now += 7
    assert endpoints.are_all_sick and endpoints.down_for_s() == 7
    endpoints.note_recovery(a)
    assert not endpoints.are_all_sick and endpoints.down_for_s() == 0
    assert endpoints.choose() is a
    endpoints.note_failure(a)
    assert endpoints.are_all_sick, "once more and it is sick again"


@given(tries=st.integers(1, 9), asked=st.none() | st.floats(0, 500), seed=st.integers())
def test_a_wait_is_bounded_jittered_and_never_shorter_than_asked(tries, asked, seed):
    backoff = Backoff(first_s=1.0, most_s=60.0)
    error = ModelError("rate_limit", "x", retry_after_s=asked)
    wait_s = next_wait_s([error] * tries, backoff, random.Random(seed))
    if asked is None:
        ceiling = min(60.0, 2.0 ** (tries - 1))
        assert ceiling / 2 <= wait_s <= ceiling
    else:
        assert asked <= wait_s <= 1.1 * asked + 1.0
    others = {next_wait_s([error] * tries, backoff, random.Random(seed + n)) for n in range(1, 4)}
    assert others != {wait_s}, "calls that were turned away together must not come back together"


@pytest.mark.parametrize(("kind", "last"), [("rate_limit", 10), ("server", 6), ("timeout", 3), ("auth", 1)])
def test_tries_end_by_kind(kind, last):
    error = ModelError(kind, "x")
    assert next_wait_s([error] * last, Backoff(), random.Random(0)) is None
    assert last == 1 or next_wait_s([error] * (last - 1), Backoff(), random.Random(0)) is not None


def test_another_server_is_asked_at_once_but_not_paid_more_often_than_one():
    def wait(*kinds, untried=11):
        return next_wait_s([ModelError(kind, "x") for kind in kinds], Backoff(), random.Random(0), untried=untried)

    assert wait("rate_limit") == wait("auth") == wait(*["server"] * 11) == 0
    assert wait("content_filter") is None and wait("invalid_json") > 0
    assert wait(*["invalid_reply"] * 3) == 0 and wait(*["invalid_reply"] * 4) is None
    assert wait("server", "invalid_reply", "server", *["invalid_reply"] * 2) == 0
    assert wait("timeout", "connection", "invalid_reply", "invalid_reply") is None
    assert wait("rate_limit", untried=0) > 0 and wait("auth", untried=0) is None


# What happened, in turn; how many servers have not been asked; what follows.
STEPS = [
    (["rate_limit"], 1, "elsewhere"),
    (["rate_limit"], 0, "wait"),
    (["rate_limit"] * 10, 0, "give up"),
    (["server"] * 6, 2, "elsewhere"),
    (["invalid_reply"] * 4, 2, "give up"),
    (["no_answer"], 0, "wait"),
    (["no_answer"] * 2, 5, "give up"),
    (["invalid_json"], 5, "wait"),
    (["auth"], 3, "elsewhere"),
    (["auth"], 0, "give up"),
    (["bad_request"], 0, "give up"),
    (["content_filter"], 3, "give up"),
    (["unreachable"], 3, "give up"),
    (["timeout", "server", "timeout"], 0, "give up"),
]


@pytest.mark.parametrize(("kinds", "untried", "step"), STEPS)
def test_the_next_step_follows_from_what_happened_alone(kinds, untried, step):
    assert next_step([ModelError(kind, "x") for kind in kinds], untried=untried) == step


def test_nobody_waits_longer_than_patience():
    asked = [ModelError("rate_limit", "x", retry_after_s=1e12)]
    assert next_step(asked, patience_s=600.0) == "give up"
    assert next_step(asked, untried=1, patience_s=600.0) == "elsewhere"


def test_a_pause_asked_for_ends_with_the_next_answer():
    endpoints = Endpoints(("http://a", "http://b"))
    endpoints.note_wait(endpoints.all[0], 1e12)
    assert endpoints.count_ready(endpoints.all) == 1
    endpoints.note_success(endpoints.all[0])
    assert endpoints.count_ready(endpoints.all) == 2
