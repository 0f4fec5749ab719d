"""The HTTP transport against a server that misbehaves."""

import asyncio
import importlib.util
import json
import logging
import subprocess
import sys
import traceback
import urllib.request
from email.utils import formatdate
from pathlib import Path

import pytest

from medthink.core.errors import UsageError
from medthink.models import ImagePart, ModelError, Request, Schema, TextPart, Usage, transport
from medthink.models.catalog import open_model
from medthink.models.limits import Backoff, RateLimits
from medthink.models.transport import HttpModel, Transport
from medthink.runs.calls.answerers import open_answerer

SERVER_FILE = Path(__file__).with_name("fault_server.py")


def load_fault_server():
    spec = importlib.util.spec_from_file_location("fault_server", SERVER_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FaultServer


FaultServer = load_fault_server()


@pytest.fixture
def long_rest(monkeypatch):
    """A server that is paused stays so for longer than any test takes."""
    monkeypatch.setattr("medthink.models.limits.FIRST_REST_S", 3600.0)
    monkeypatch.setattr("medthink.models.limits.MOST_REST_S", 3600.0)


SENTINEL = "sk-SENTINEL-7f3a9c1e5b-do-not-show"
KEY_PIECES = (SENTINEL, SENTINEL[:8], "c2stU0VO")
ENV = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MEDTHINK_SERVER_KEY"), SENTINEL)
SPECS = {
    "server/m": "/v1",
    "openai-chat/gpt-4o": "/v1",
    "openai/gpt-5.2": "/v1",
    "anthropic/claude-opus-4-6": "",
    "google/gemini-3-pro": "",
}
SCHEMA = Schema(
    "reading",
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": ["A", "B", "C"]}, "why": {"type": "string"}},
        "required": ["answer", "why"],
        "additionalProperties": False,
    },
)
IMAGES = tuple(ImagePart.from_bytes(bytes([n]) * 2_000, "image/png", width=64, height=64) for n in range(3))
QUICK = Backoff(first_s=0.002, most_s=0.01)


def ask(text="What is it?", **fields):
    parts = (TextPart("history"), *IMAGES, TextPart(text))
    return Request(system="You read images.", parts=parts, schema=SCHEMA, max_tokens=500, **fields)


class Log(list):
    """The attempts of one call, as a caller keeps account of them."""

    def note(self, attempt):
        self.append(attempt)

    async def again(self):
        pass


def connect(server, spec="server/m", *, timeout_s=120.0, pace=None, backoff=QUICK) -> HttpModel:
    transport = Transport(timeout_s=timeout_s, backoff=backoff, pace=pace or RateLimits())
    return open_model(spec, base_urls=(server.url + SPECS[spec],), transport=transport, env=ENV)


async def ask_once(script, spec="server/m", *, request=None, retry_after=None, **options):
    attempts = Log()
    async with FaultServer(script=script, hang_s=600.0) as server:
        server.retry_after = retry_after or server.retry_after
        async with connect(server, spec, **options) as model:
            try:
                outcome = await model.generate(request or ask(), attempts)
            except ModelError as error:
                outcome = error
    return outcome, attempts, server


@pytest.mark.parametrize("spec", SPECS)
def test_a_good_answer_is_read_whole(spec):
    reply, attempts, server = asyncio.run(ask_once([], spec))
    assert reply.json["answer"] in "ABC"
    assert json.loads(reply.text) == reply.json
    assert reply.stop == "end"
    assert reply.usage == Usage(input=350, cached=10, output=20, reasoning=5)
    assert reply.model != "" and reply.latency_s > 0
    assert (reply.attempts, len(attempts), server.requests) == (1, 1, 1)
    assert server.records[0]["images"] == [image.digest for image in IMAGES]


RETRIED = {
    "429": "rate_limit",
    "429-after": "rate_limit",
    "500": "server",
    "529": "server",
    "reset": "connection",
    "truncated-body": "connection",
    "empty": "invalid_reply",
    "error-inside": "server",
    "html": "invalid_reply",
    "wrong-type": "invalid_reply",
    "invalid-json": "invalid_json",
}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("fault", RETRIED)
def test_transient_faults_are_tried_again(fault, spec):
    reply, attempts, server = asyncio.run(ask_once([fault], spec))
    assert [attempt.outcome for attempt in attempts] == [RETRIED[fault], "ok"]
    assert reply.stop == "end" and reply.json is not None
    assert reply.attempts == server.requests == 2
    first, second = server.records
    assert first["body"] == second["body"], "a retry must not change what is asked"


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_reply_that_does_not_end_times_out_and_is_tried_again(fault):
    error, attempts, _ = asyncio.run(ask_once([fault] * 9, timeout_s=0.3))
    assert [attempt.outcome for attempt in attempts] == ["timeout"] * 3
    assert error.kind == "timeout"


def test_an_oversized_reply_is_not_read_to_its_end_and_may_have_been_billed(monkeypatch):
    monkeypatch.setattr(transport, "MAX_REPLY_BYTES", 100)
    error, attempts, _ = asyncio.run(ask_once([]))
    assert [(attempt.outcome, attempt.is_billed) for attempt in attempts] == [("oversized", True)] * 2
    assert error.kind == "oversized" and "larger than 100 bytes" in error.detail


FINAL = {
    "400": "bad_request",
    "401": "auth",
    "404": "bad_request",
    "quota": "quota",
    "unsupported": "unsupported",
    "redirect": "bad_request",
}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("fault", FINAL)
def test_final_faults_are_never_tried_again(fault, spec):
    error, attempts, server = asyncio.run(ask_once([fault], spec))
    assert isinstance(error, ModelError)
    assert error.kind == FINAL[fault] and not error.retryable
    assert error.attempts == len(attempts) == server.requests == 1


def test_a_final_error_says_what_to_do():
    error, *_ = asyncio.run(ask_once(["unsupported"]))
    assert "--temperature" in str(error)
    error, *_ = asyncio.run(ask_once(["401"]))
    assert "MEDTHINK_SERVER_KEY" in str(error)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("fault", "stop"), [("refusal", "refused"), ("length", "truncated"), ("filter", "filtered")])
def test_a_refusal_or_truncation_is_a_paid_reply(fault, stop, spec):
    # Anthropic has one word for both, and so has Gemini.
    stop = {("anthropic", "filter"): "refused", ("google", "refusal"): "filtered"}.get(
        (spec.split("/")[0], fault), stop
    )
    reply, _, server = asyncio.run(ask_once([fault], spec))
    assert reply.stop == stop and reply.json is None
    assert reply.usage is not None and reply.usage.output == 20
    assert server.requests == 1


def test_paid_attempts_that_failed_are_counted_one_by_one():
    usage = Usage(input=350, cached=10, output=20, reasoning=5)
    _, attempts, _ = asyncio.run(ask_once(["invalid-json", "invalid-json"]))
    assert [(one.outcome, one.usage) for one in attempts] == [("invalid_json", usage)] * 2 + [("ok", usage)]
    error, attempts, server = asyncio.run(ask_once(["invalid-json"] * 9))
    assert error.kind == "invalid_json" and "--no-schema" in str(error)
    assert error.attempts == len(attempts) == server.requests == 3
    assert [one.usage for one in attempts] == [usage] * 3


def test_without_a_schema_prose_is_an_answer():
    request = Request(parts=(TextPart("?"),), max_tokens=5)
    reply, *_ = asyncio.run(ask_once([], request=request))
    assert reply.text == "Answer: A" and reply.json is None


def test_nothing_listening_is_waited_for_as_long_as_patience_allows_and_nothing_is_sent():
    async def scenario():
        server = FaultServer()
        await server.start()
        await server.stop()
        attempts = Log()
        impatient = Backoff(first_s=0.002, most_s=0.01, patience_s=0.05)
        async with connect(server, backoff=impatient) as model:
            waits = []
            model.on_wait = waits.append
            with pytest.raises(ModelError) as caught:
                await model.generate(ask(), attempts)
        return caught.value, attempts, waits

    error, attempts, waits = asyncio.run(scenario())
    assert error.kind == "unreachable" and error.attempts == 0
    assert "--max-wait" in error.remedy
    assert len(attempts) == 2 and not any(attempt.is_sent for attempt in attempts)
    assert waits and "no reply" in waits[0]


def test_a_server_that_comes_back_is_found_and_no_call_is_lost():
    async def scenario():
        server = FaultServer()
        await server.start()
        port = server.port
        await server.stop()
        async with connect(server, pace=RateLimits(concurrency=4)) as model:
            calls = [asyncio.create_task(model.generate(ask(f"case {n}"))) for n in range(12)]
            waiting = asyncio.Event()
            model.on_wait = lambda _: waiting.set()
            await waiting.wait()
            await server.start(port)
            try:
                return await asyncio.gather(*calls)
            finally:
                await server.stop()

    assert len(asyncio.run(scenario())) == 12


@pytest.mark.parametrize("fault", ["404", "400", "401", "html", "500", "empty", "unsupported", "quota", "redirect"])
@pytest.mark.usefixtures("long_rest")
def test_a_server_that_answers_wrongly_at_once_swallows_no_call(fault):
    async def scenario():
        async with FaultServer(fault_rate=1.0, faults=(fault,)) as broken, FaultServer(latency_s=0.01) as well:
            urls = (broken.url + "/v1", well.url + "/v1")
            transport = Transport(backoff=QUICK, pace=RateLimits(concurrency=4))
            async with open_model("server/m", base_urls=urls, transport=transport, env={}) as model:
                places = asyncio.Semaphore(4)

                async def call(number):
                    async with places:
                        await model.generate(ask(f"case {number}"))

                await asyncio.gather(*map(call, range(60)))
                assert model.endpoints.all[0].is_sick and not model.endpoints.all[1].is_sick
            return broken.requests, well.requests

    broken, well = asyncio.run(scenario())
    assert well == 60, "every call was answered by the other"
    assert broken <= 20, "and the broken one was soon left alone"


def test_a_request_that_no_server_takes_makes_none_of_them_sick():
    async def scenario():
        async with FaultServer(fault_rate=1.0, faults=("400",)) as one, FaultServer(script=["400"]) as two:
            urls = (one.url + "/v1", two.url + "/v1")
            async with open_model("server/m", base_urls=urls, transport=Transport(backoff=QUICK), env={}) as model:
                with pytest.raises(ModelError) as caught:
                    await model.generate(ask())
                return caught.value, one.requests, two.requests, [each.failures for each in model.endpoints.all]

    error, one, two, failures = asyncio.run(scenario())
    assert (error.kind, one, two, failures) == ("bad_request", 1, 1, [0, 0])


def test_one_request_that_breaks_a_server_each_time_fails_alone():
    async def scenario():
        server = FaultServer(fault_rate=1.0, faults=("500",))
        async with server, connect(server) as model:
            with pytest.raises(ModelError) as caught:
                await model.generate(ask())
            server.fault_rate = 0.0
            await model.generate(ask("another"))
            return caught.value, server.requests

    error, requests = asyncio.run(scenario())
    assert (error.kind, requests) == ("server", 7), "it is there and says so: this is not waited for"


@pytest.mark.parametrize(
    ("headers", "least_s"),
    [
        ({"Retry-After": "0.3"}, 0.3),
        ({"retry-after-ms": "250"}, 0.25),
        (
            {
                "Retry-After": formatdate(1_000_000_001, usegmt=True),
                "Date": formatdate(1_000_000_000, usegmt=True),
            },
            1.0,
        ),
    ],
)
def test_retry_after_is_honoured(headers, least_s):
    waits = []

    async def scenario():
        loop = asyncio.get_running_loop()
        started = loop.time()
        await ask_once(["429-after"], retry_after=headers)
        waits.append(loop.time() - started)

    asyncio.run(scenario())
    assert waits[0] >= least_s


def test_a_longer_wait_than_patience_is_an_error_not_a_day_of_silence():
    backoff = Backoff(first_s=0.002, most_s=0.01, patience_s=0.01)
    error, attempts, _ = asyncio.run(ask_once(["429-after"], backoff=backoff))
    assert error.kind == "rate_limit" and error.retry_after_s == 0.05 and len(attempts) == 1


def test_thirty_percent_faults_every_call_ends_and_the_counts_agree():
    attempts = Log()

    async def scenario():
        # What hangs ends as a broken connection, long before the time-out.
        server = FaultServer(seed=11, fault_rate=0.3, hang_s=0.2)
        async with server, connect(server) as model:
            calls = [model.generate(ask(f"case {n}", temperature=0.5), attempts) for n in range(120)]
            return await asyncio.gather(*calls, return_exceptions=True), server

    outcomes, server = asyncio.run(scenario())
    assert all(isinstance(outcome, ModelError) or outcome.stop == "end" for outcome in outcomes)
    assert sum(not isinstance(outcome, ModelError) for outcome in outcomes) >= 115
    assert sum(outcome.attempts for outcome in outcomes) == server.requests
    assert sum(attempt.is_sent for attempt in attempts) == server.requests
    assert {record["body"]["messages"][-1]["content"][-1]["text"] for record in server.records} == {
        f"case {n}" for n in range(120)
    }
    for record in server.records:
        assert record["body"]["temperature"] == 0.5 and record["body"]["max_tokens"] == 500
        assert record["images"] == [image.digest for image in IMAGES]


def test_no_more_calls_are_in_flight_than_allowed():
    async def scenario():
        async with FaultServer(latency_s=0.005, hold_after=0, hold_until=3) as server:
            async with connect(server, pace=RateLimits(concurrency=3)) as model:
                await asyncio.gather(*(model.generate(ask(f"case {n}")) for n in range(20)))
            return server.most_in_flight

    assert asyncio.run(scenario()) == 3


@pytest.mark.parametrize("pace", [RateLimits(requests_per_minute=2), RateLimits(tokens_per_minute=2_000)])
def test_no_more_is_sent_in_a_minute_than_allowed(pace):
    """A call has some 550 tokens, and sets aside 500 more for its reply until it is there."""

    async def scenario():
        async with FaultServer() as server, connect(server, pace=pace) as model:
            calls = [asyncio.create_task(model.generate(ask(f"case {n}"))) for n in range(12)]
            while not server.answered:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            return server.requests

    assert 1 <= asyncio.run(scenario()) < 12


def test_a_storm_of_429_lowers_the_concurrency_and_it_recovers():
    async def scenario():
        server = FaultServer(script=["429"] * 24, latency_s=0.002)
        async with server, connect(server, pace=RateLimits(concurrency=8)) as model:
            await asyncio.gather(*(model.generate(ask(f"case {n}")) for n in range(8)))
            lowered = model.gate.limit
            for _ in range(12):
                await asyncio.gather(*(model.generate(ask(f"later {n}")) for n in range(8)))
            return lowered, model.gate.limit

    lowered, recovered = asyncio.run(scenario())
    assert lowered < 8 == recovered


@pytest.mark.usefixtures("long_rest")
def test_a_sick_endpoint_rests_and_the_other_does_the_work():
    async def scenario():
        async with FaultServer(fault_rate=1.0, faults=("500",)) as sick, FaultServer(latency_s=0.002) as well:
            urls = (sick.url + "/v1", well.url + "/v1")
            transport = Transport(backoff=QUICK, pace=RateLimits(concurrency=4))
            async with open_model("server/m", base_urls=urls, transport=transport, env={}) as model:
                replies = await asyncio.gather(*(model.generate(ask(f"case {n}")) for n in range(60)))
                while_sick = sick.requests
                sick.fault_rate = 0.0
                model.endpoints.all[0].rests_until = 0.0  # its rest is over
                await asyncio.gather(*(model.generate(ask(f"again {n}")) for n in range(40)))
                return len(replies), while_sick, sick.requests - while_sick, model.endpoints.all[0].failures

    done, while_sick, afterwards, failures = asyncio.run(scenario())
    assert done == 60
    assert while_sick <= 8, "a sick endpoint is left alone"
    assert afterwards > 5 and failures == 0, "a recovered endpoint gets its share again"


def test_equal_endpoints_share_the_work():
    async def scenario():
        async with FaultServer(latency_s=0.002) as one, FaultServer(latency_s=0.002) as two:
            urls = (one.url + "/v1", two.url + "/v1")
            async with open_model("server/m", base_urls=urls, env={}) as model:
                await asyncio.gather(*(model.generate(ask(f"case {n}")) for n in range(40)))
            return one.requests, two.requests

    assert max(asyncio.run(scenario())) <= 22


def test_cancelling_frees_every_place_at_once():
    async def scenario():
        attempts = Log()
        server = FaultServer(fault_rate=1.0, faults=("hang",), hang_s=600.0)
        async with server, connect(server, pace=RateLimits(concurrency=2)) as model:
            tasks = [asyncio.create_task(model.generate(ask(f"case {n}"), attempts)) for n in range(5)]
            while sum("body" in record for record in server.records) < 2:
                await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 120)
            server.fault_rate = 0.0
            reply = await model.generate(ask("after"), attempts)
            return attempts, model.gate.in_flight, server.requests, reply

    attempts, in_flight, requests, reply = asyncio.run(scenario())
    assert [(attempt.outcome, attempt.is_sent) for attempt in attempts] == [
        ("cancelled", True),
        ("cancelled", True),
        ("ok", True),
    ]
    assert in_flight == 0 and requests == 3 and reply.attempts == 1


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("fault", ["echo-key", "401", "400", "500", "reset", "html", "invalid-json"])
def test_keys_are_in_no_error_repr_or_log(fault, spec, caplog):
    caplog.set_level(logging.DEBUG)
    error, attempts, server = asyncio.run(ask_once([fault] * 12, spec))
    assert isinstance(error, ModelError)
    assert any(SENTINEL in value for value in server.records[0]["headers"].values()), "the key was really sent"
    model = connect(server, spec)
    shown = (
        "".join(traceback.format_exception(error)), repr(error), str(error), repr(vars(error)), repr(attempts),
        caplog.text, repr(model), repr(model.target), repr(model.target.key),
    )  # fmt: skip
    for piece in KEY_PIECES:
        assert piece not in "".join(shown)


def start_program(lifetime_s):
    command = [sys.executable, str(SERVER_FILE), "--port", "0", "--seed", "3", "--lifetime", str(lifetime_s)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_the_server_runs_as_a_program_and_ends_by_itself():
    with start_program(0.1) as process:
        assert process.wait(timeout=120) == 0
    with start_program(600) as process:
        port = int(process.stdout.readline())

        async def scenario():
            async with open_model("server/m", base_urls=(f"http://127.0.0.1:{port}/v1",), env={}) as model:
                return await model.generate(ask())

        assert asyncio.run(scenario()).stop == "end"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stats") as response:
            stats = json.load(response)
        assert stats["requests"] == 1 and stats["images"] == 3
        process.kill()


def test_a_service_tier_is_sent_and_is_no_part_of_what_is_asked():
    async def scene():
        async with FaultServer() as server:
            settings = Transport(backoff=QUICK, service_tier="flex")
            url = server.url + SPECS["openai/gpt-5.2"]
            async with open_model("openai/gpt-5.2", base_urls=(url,), transport=settings, env=ENV) as model:
                await model.generate(ask())
            return server.records[0]["body"]

    assert asyncio.run(scene())["service_tier"] == "flex"
    assert ask().key() == ask(service_tier="flex").key(), "the same call has the same key at any tier"


def test_what_has_no_service_tiers_refuses_one():
    for spec in ("baseline/random", "inspect/openai/gpt-4o"):
        with pytest.raises(UsageError, match="has no service tiers"):
            open_answerer(spec, benchmark=None, transport=Transport(service_tier="flex"))
