"""A model through Inspect AI: one call is one attempt, and what Inspect would change in silence is refused or seen."""

import asyncio
import hashlib
import json
import os

import pytest
from fault_server import FaultServer

from lazily import Lazily
from medthink.core.errors import UsageError
from medthink.models import ImagePart, ModelError, Request, Schema, TextPart, Usage
from medthink.models.inspect.messages import read_failure, read_output
from medthink.models.inspect.model import InspectModel
from medthink.models.limits import Backoff, RateLimits
from medthink.models.prices import load_prices
from medthink.models.transport import Transport
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from small_benchmark import picture, write_benchmark

pytestmark = pytest.mark.filterwarnings("ignore")  # Inspect's and its packages' own warnings are theirs

inspect_model = Lazily("inspect_ai.model")
SCHEMA = Schema("letter", {"type": "object", "properties": {}, "required": [], "additionalProperties": False})
PATHS = {"openai": "/v1", "anthropic": "", "google": ""}


class Notes:
    """What an attempt log is told."""

    def __init__(self):
        self.outcomes = []

    def note(self, attempt):
        self.outcomes.append(attempt.outcome)

    async def again(self):
        pass


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "sk-secret-of-the-test")
    for name in [name for name in os.environ if name.startswith("INSPECT_")]:
        monkeypatch.delenv(name)


def request(*parts, **settings):
    asked = tuple(TextPart(part) if isinstance(part, str) else part for part in parts or ("Which?",))
    return Request(**({"system": "You read images.", "parts": asked} | settings))


def talk(name, asked, *, script=(), times=1, pace=8, **server):
    """Ask the model so often at once; returns server, outcomes (replies or errors) and the attempts' outcomes."""

    async def main():
        async with FaultServer(script=list(script), **server) as there:
            transport = Transport(
                pace=RateLimits(concurrency=pace), backoff=Backoff(first_s=0.01, most_s=0.02), timeout_s=120.0
            )
            url = there.url + PATHS[name.partition("/")[0]]
            model, notes = InspectModel(name, base_urls=(url,), transport=transport), Notes()
            try:
                calls = (model.generate(asked, notes) for _ in range(times))
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
            finally:
                await model.close()
            return there, outcomes, notes.outcomes

    return asyncio.run(main())


@pytest.mark.parametrize(
    "name", ["openai/gpt-4o", "openai/gpt-5", "anthropic/claude-sonnet-4-0", "google/gemini-2.5-flash"]
)
def test_what_is_asked_is_what_arrives_once_and_in_order(name):
    pictures = [picture(seed) for seed in range(3)]
    shown = [ImagePart.from_bytes(one, "image/jpeg") for one in pictures]
    asked = request("First:", shown[0], "then", shown[1], shown[2], "Which?", max_tokens=99)
    server, (reply,), outcomes = talk(name, asked)
    assert not isinstance(reply, Exception), reply
    assert server.requests == 1, "no probe of Inspect's own"
    assert server.records[0]["images"] == [hashlib.sha256(one).hexdigest() for one in pictures]
    assert reply.text and reply.stop == "end" and reply.usage.input > 0 and reply.attempts == 1
    assert outcomes == ["ok"]


@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-0", "google/gemini-2.5-flash"])
def test_one_call_of_inspect_is_one_attempt_and_retries_are_ours(name):
    asked = request(max_tokens=99)
    server, (reply,), outcomes = talk(name, asked, script=["500", "429", ""])
    assert server.requests == 3 and outcomes == ["server", "rate_limit", "ok"]
    assert reply.attempts == 3
    server, (error,), outcomes = talk(name, asked, script=["500"] * 9)
    assert error.kind == "server" and server.requests == len(outcomes) == 6


@pytest.mark.parametrize(
    ("name", "settings", "flag"),
    [
        ("openai/gpt-5", {"seed": 7}, "--model-seed"),
        ("openai/gpt-5", {"temperature": 0.5}, "--temperature"),
        ("anthropic/claude-sonnet-4-0", {"seed": 7, "max_tokens": 99}, "--model-seed"),
        ("anthropic/claude-sonnet-4-0", {"temperature": 0.5, "max_tokens": 99}, "--temperature"),
        ("google/gemini-2.5-flash", {"seed": 7}, "--model-seed"),
    ],
)
def test_a_setting_that_inspect_leaves_out_ends_the_call_and_no_other_is_sent(name, settings, flag):
    server, errors, _ = talk(name, request(**settings), times=3)
    assert server.requests == 1
    assert {error.kind for error in errors} == {"unsupported"} and flag in errors[0].remedy
    assert errors[0].usage is not None and errors[1].usage is None, "the first was paid for"


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("openai/gpt-4o", {"seed": 7, "temperature": 0.5, "max_tokens": 99, "schema": SCHEMA}),
        ("openai/gpt-5", {"effort": "low", "max_tokens": 99, "schema": SCHEMA}),
        ("google/gemini-2.5-flash", {"temperature": 0.5, "max_tokens": 99, "schema": SCHEMA}),
        ("anthropic/claude-sonnet-4-0", {"max_tokens": 99, "schema": SCHEMA}),
    ],
)
def test_settings_that_are_sent_are_taken(name, settings):
    _, (reply,), _ = talk(name, request(**settings, is_json_checked=False))
    assert not isinstance(reply, Exception), reply


@pytest.mark.parametrize("name", ["openai/gpt-4o", "openai/gpt-5"])
@pytest.mark.parametrize(("fault", "stop"), [("refusal", "refused"), ("length", "truncated"), ("filter", "filtered")])
def test_how_a_reply_ended_is_seen(name, fault, stop):
    _, (reply,), _ = talk(name, request(), script=[fault])
    assert getattr(reply, "stop", None) == stop or (fault == "filter" and reply.kind == "content_filter"), reply


@pytest.mark.parametrize(("fault", "kind"), [("401", "auth"), ("400", "bad_request"), ("quota", "quota")])
def test_errors_have_their_kind_and_no_key(fault, kind):
    server, (error,), _ = talk("openai/gpt-4o", request(), script=[fault] * 3)
    assert isinstance(error, ModelError) and error.kind == kind
    assert server.requests == 1 and "secret" not in str(error)


@pytest.mark.parametrize("fault", ["html", "truncated-body", "empty"])
@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-0", "google/gemini-2.5-flash"])
def test_a_broken_body_is_asked_again_and_no_answer(name, fault):
    there, (outcome,), attempts = talk(name, request(), script=[fault] * 9)
    assert isinstance(outcome, ModelError) and outcome.is_billed
    assert outcome.kind in ("invalid_reply", "connection", "no_answer") and len(attempts) == there.requests > 1


def test_no_more_calls_are_in_flight_than_asked_for():
    server, replies, _ = talk("openai/gpt-4o", request(), times=9, pace=3, latency_s=0.005, hold_after=1, hold_until=3)
    assert server.most_in_flight == 3 and all(reply.stop == "end" for reply in replies)


def made(text="(B)", *, stop="stop", usage=(10, 2, 5, 1, 3), **fields):
    counts = None
    if usage is not None:
        names = ("input_tokens", "output_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
        counts = inspect_model.ModelUsage(**dict(zip(names, usage, strict=False)), reasoning_tokens=1)
    parts = [inspect_model.ContentReasoning(reasoning="I see."), inspect_model.ContentText(text=text)]
    message = inspect_model.ChatMessageAssistant(content=parts)
    return inspect_model.ModelOutput(
        model="m",
        choices=[inspect_model.ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=counts,
        **fields,
    )


def test_cached_tokens_count_as_input():
    reply = read_output(made(usage=(10, 4, 5, 3)), wants_json=False)
    assert reply.usage == Usage(input=18, cached=5, output=4, reasoning=1, written=3)
    assert reply.reasoning == "I see." and reply.text == "(B)"


def test_an_error_message_in_place_of_an_answer_is_no_answer():
    with pytest.raises(ModelError, match="maximum context") as caught:
        read_output(made("maximum context length is 8", stop="model_length", usage=None), wants_json=False)
    assert caught.value.kind == "unsupported" and "--image-share" in caught.value.remedy
    assert read_output(made(stop="model_length"), wants_json=False).stop == "truncated"


def test_another_model_that_answered_is_no_answer():
    fallback = {"model": "m", "fallback_model": "other"}
    with pytest.raises(ModelError, match="other answered in its place") as caught:
        read_output(made(fallback=fallback), wants_json=False)
    assert caught.value.usage is not None


@pytest.mark.parametrize("stop", ["unknown", "tool_calls"])
def test_an_end_that_says_nothing_keeps_the_answer_and_the_word(stop):
    reply = read_output(made(stop=stop), wants_json=False)
    assert (reply.text, reply.stop, reply.stop_word) == ("(B)", "end", stop)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


class ConnectError(Exception):
    """What httpx raises where no connection was made."""


class APIConnectionError(Exception):
    """What a provider's package makes of it."""


class ClientPayloadError(Exception):
    """What aiohttp raises where a body was cut off."""


class OpenAIResponseError(Exception):
    """What Inspect raises for a page in place of a completion."""


@pytest.mark.parametrize(
    ("error", "kind", "is_billed"),
    [
        (AssertionError(), "invalid_reply", True),
        (json.JSONDecodeError("Expecting value", "<html>", 0), "invalid_reply", True),
        (KeyError("choices"), "invalid_reply", True),
        (caused(APIConnectionError("Connection error."), ConnectError("refused")), "connection", False),
        (caused(APIConnectionError("Connection error."), ConnectionRefusedError()), "connection", False),
        (ConnectionResetError(), "connection", True),
        (APIConnectionError("Connection error."), "connection", True),
        (ClientPayloadError("Response payload is not completed"), "connection", True),
        (OpenAIResponseError("Unexpected non-ChatCompletion response: '<!doctype html>'"), "invalid_reply", True),
    ],
)
def test_a_transport_that_failed_is_no_bad_request_and_one_that_never_left_is_not_billed(error, kind, is_billed):
    failure = read_failure(error)
    assert (failure.kind, failure.is_billed) == (kind, is_billed)


@pytest.mark.parametrize("spec", ["openai", "openai/", "nobody/model", "openai/gpt-4o"])
def test_what_is_missing_is_named(spec, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="inspect/"):
        InspectModel(spec).open()


def test_the_same_model_costs_the_same():
    prices = load_prices()
    name = next(name for name in prices.models if name.startswith("openai/"))
    assert prices.find(f"inspect/{name}") == prices.find(name)


def test_a_run_through_inspect_is_like_any_other(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=3)

    def run(url, out):
        return run_session(
            RunSpec(benchmark=bench, model="inspect/openai/gpt-4o", out=out, base_urls=(url,), task="twi",
                    condition=Condition(max_tokens=200), prices=None)
        )  # fmt: skip

    async def main():
        async with FaultServer(script=["", "500", "429"]) as server:
            url = f"{server.url}/v1"
            first = await asyncio.to_thread(run, url, tmp_path / "run")
            again = await asyncio.to_thread(run, url, tmp_path / "run")
            return server, first, again

    server, first, again = asyncio.run(main())
    progress = first.run.manifest.progress
    assert progress.states == {"ok": 3} and first.calls_made == 12 and server.requests == 14
    assert progress.attempts == 14 and progress.cost_usd > 0
    assert again.calls_made == 0
