"""What is marked for a provider's cache, what that saves, and how finely images are sent."""

import asyncio
import json
from functools import partial

import pytest
from msgspec.structs import replace

from medthink.cli.command import run_command
from medthink.cli.run.display import say_cache_used
from medthink.models.prices import Price, charge_attempt, load_prices, parse_price
from medthink.models.request import Attempt, ImagePart, Request, TextPart, Usage
from medthink.runs.calls.answerers import ModelAnswerer
from medthink.runs.dry_run import estimate
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.manifest import RunSpec, read_manifest
from medthink.workflow.condition import Condition
from small_benchmark import write_benchmark

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-loopback-key", "OPENAI_API_KEY": "sk-loopback-key-of-ours"}


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bench(tmp_path):
    return write_benchmark(tmp_path / "bench", cases=2, images=9)


def run(bench, server, model, *flags):
    """Run a model, and return what the server was asked, in its order."""
    base = server.url + ("" if model.startswith("anthropic") else "/v1")
    out = bench.parent / "run"
    words = ["run", bench, "--model", model, "--base-url", base, "--out", out, "--max-tokens", "900", *flags]
    assert run_command([*map(str, words), "--quiet"]) == 0
    return [record["body"] for record in server.ask("/_records") if "messages" in str(record.get("body", ""))]


def marks_in(body):
    return [bool(part.get("cache_control")) for part in body["messages"][0]["content"]]


def test_the_steps_that_begin_alike_are_marked_at_their_last_image(bench, start_server):
    asked = run(bench, start_server(), "anthropic/claude-opus-5-5", "--task", "twi", "--no-schema")
    of_all = [body for body in asked if len(marks_in(body)) > 10]
    assert len(asked) == 2 * 11 and len(of_all) == 2 * 2, "findings for each image, a summary and a differential"
    assert all(sum(marks_in(body)) == 1 and marks_in(body)[-2] for body in of_all)
    beginnings = {json.dumps(body["messages"][0]["content"][:-1]) for body in of_all}
    assert len(beginnings) == 2, "the summary and the differential of a case begin alike"
    assert not any(any(marks_in(body)) for body in asked if body not in of_all)


def test_steps_with_schemas_of_their_own_are_not_marked(bench, start_server):
    asked = run(bench, start_server(), "anthropic/claude-opus-5-5", "--task", "twi")
    assert asked and not any(any(marks_in(body)) for body in asked), "what is written would never be read"


def test_the_samples_of_a_case_are_asked_one_after_another_and_marked(bench, start_server):
    server = start_server("--latency", "0.02")
    asked = run(bench, server, "anthropic/claude-opus-5-5", "--samples", "4")
    assert len(asked) == 8 and all(sum(marks_in(body)) == 1 for body in asked)
    assert server.ask("/_stats")["most_in_flight"] <= 2, "one of each case"


@pytest.mark.parametrize(("flags", "sent"), [((), "original"), (("--image-detail", "low"), "low")])
def test_the_level_of_detail_is_sent_recorded_and_shown(bench, start_server, capsys, flags, sent):
    server, out = start_server(), bench.parent / "run"
    words = ["--model", "openai-chat/gpt-6-sol", "--base-url", f"{server.url}/v1", "--out", str(out), *flags]
    assert run_command(["run", str(bench), *words, "--quiet"]) == 0
    bodies = [record["body"] for record in server.ask("/_records") if record.get("images")]
    details = [part["image_url"]["detail"] for body in bodies for part in body["messages"][-1]["content"]
               if part["type"] == "image_url"]  # fmt: skip
    assert set(details) == {sent} and len(details) == 18
    manifest = read_manifest(out)
    assert sent in (manifest.image_detail, manifest.condition.image_detail)
    capsys.readouterr()
    assert run_command(["score", str(out)]) == 0
    assert f"image detail {sent}" in " ".join(capsys.readouterr().out.split())


def dry(bench, model, **fields):
    urls = ("http://127.0.0.1:1/v1",) if model.startswith("server") else ()
    condition = Condition(max_tokens=900, **fields)
    return estimate(RunSpec(benchmark=bench, model=model, task="twi", base_urls=urls, condition=condition))


def test_the_saving_is_in_the_dry_run(bench):
    plain = dry(bench, "google/gemini-4-argon")
    cached = dry(bench, "google/gemini-4-argon", use_schema=False)
    assert plain.cached_tokens == 0 and plain.saved_usd == 0 < plain.could_save_usd
    assert cached.cached_tokens > 2 * 9 * 1_120 and cached.saved_usd == pytest.approx(plain.could_save_usd, rel=0.01)
    assert cached.cost_usd == pytest.approx(plain.cost_usd - cached.saved_usd, rel=0.01)
    assert dry(bench, "server/qwen", use_schema=False).cached_tokens == 0
    batch = RunSpec(benchmark=bench, model="google/gemini-4-argon", task="twi", batch=True,
                    condition=Condition(use_schema=False))  # fmt: skip
    assert estimate(batch).cached_tokens == 0, "hours may pass between the steps of a batch"


async def write_attempt(folder, usage, price):
    ledger = Ledger(folder / "ledger.sqlite")
    attempt = Attempt(number=1, endpoint="", outcome="ok", is_sent=True, latency_s=0.1, usage=usage)
    ledger.note_attempt("key", attempt, charge_attempt(usage, is_billed=True, worst_usd=None, price=price))
    await ledger.wait_written()
    await asyncio.sleep(0)
    ledger.close()


OPUS = load_prices().find("anthropic/claude-opus-4-6")


@pytest.mark.parametrize(
    ("price", "tier", "saved"),
    [
        # Read: 0.6 × (5 − 0.5); written: 0.1 × (6.25 − 5).
        (OPUS.cost_usd, "", "; saved $2.58"),
        (partial(OPUS.cost_usd, is_batch=True), "", "; saved $1.29"),
        (OPUS.cost_usd, "priority", "; saved $5.15"),
        (Price(input=1, cached=0.5, write=1, output=2).cost_usd, "", "; saved $0.30"),
        (parse_price("4/20").cost_usd, "", "; saved nothing, and costs $0.10"),
        (lambda _usage: None, "", ""),
    ],
)
def test_the_saving_is_beside_the_cost(price, tier, saved, tmp_path):
    used = Usage(input=1_000_000, cached=600_000, written=100_000, output=10, tier=tier)
    asyncio.run(write_attempt(tmp_path, used, price))
    ((_, told),) = say_cache_used(tmp_path)
    assert told == f"60 % of the input tokens read from it, 10 % written to it{saved}"


@pytest.mark.parametrize(
    ("spec", "factor"), [("anthropic/claude-opus-5", 1.25), ("openai/gpt-6-sol", 1.25), ("openai/gpt-5.5", 1.0)]
)
def test_the_most_that_a_call_may_cost_counts_what_goes_into_the_cache(spec, factor):
    image = ImagePart.from_bytes(b"pixels", "image/png", width=1_000, height=1_000)
    alone = Request(parts=(TextPart("history"), image, TextPart("?")), max_tokens=1)
    repeated = replace(alone, is_repeated=True)

    def worst(request, *, is_batch=False):
        price = load_prices().find(spec)
        answerer = ModelAnswerer(spec, base_urls=(), transport=None, price=price, is_batch=is_batch)
        sent = b"".join(answerer.encode(request).chunks)
        return answerer.worst_cost_usd(request), b"cache_control" in sent or b"cache_breakpoint" in sent

    (least, is_marked), (most, is_marked_again) = worst(alone), worst(repeated)
    assert not is_marked and is_marked_again == (factor > 1)
    assert most == pytest.approx(least * factor, rel=0.02)
    assert worst(repeated, is_batch=True) == worst(alone, is_batch=True), "in a batch nothing is marked"


def test_without_a_limit_the_longest_reply_at_the_effort_is_reserved():
    def worst(**fields):
        answerer = ModelAnswerer("openai/gpt-6-sol", base_urls=(), transport=None, price=Price(input=0.0, output=1.0))
        return answerer.worst_cost_usd(Request(parts=(TextPart("?"),), **fields)) * 1e6

    assert worst() == worst(effort="low") == 16_384 < worst(effort="high") < worst(effort="max") == 128_000
    assert worst(effort="max", max_tokens=500) == 500


def test_the_saving_is_in_the_cost_of_scores_and_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    bench, run, page = write_benchmark(tmp_path / "bench", cases=3), tmp_path / "run", tmp_path / "page.html"
    assert run_command(["run", str(bench), "--model", "baseline/random", "--out", str(run)]) == 0
    used = Usage(input=1_000_000, cached=600_000, written=100_000, output=10)
    asyncio.run(write_attempt(run, used, Price(input=1, cached=0.5, write=1, output=2).cost_usd))
    (run / "scores.json").unlink(missing_ok=True)
    capsys.readouterr()
    assert run_command(["score", str(run)]) == 0
    assert "$0.70 (cache saved $0.30)" in capsys.readouterr().out
    assert run_command(["score", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["usage"]["saved_usd"] == pytest.approx(0.3)
    table = tmp_path / "t.csv"
    assert run_command(["report", str(run), "-o", str(page), "--csv", str(table)]) == 0
    assert "$0.70 (cache saved $0.30)" in page.read_text()
    assert ",0.3" in table.read_text() and "saved_usd" in table.read_text()
