"""What a run shows while it works: by calls, in a terminal, elsewhere and from another terminal."""

import io
import json
import re
import signal
import time
from pathlib import Path

import pytest
from rich.console import Console

from medthink.cli.output import (
    LiveProgress,
    describe_phase,
    describe_time,
    progress_block,
    progress_line,
    progress_text,
)
from medthink.models.prices import Charge
from medthink.models.request import Usage
from medthink.runs.progress import LiveCounts
from processes import Server, finish, medthink
from small_benchmark import write_benchmark


@pytest.fixture
def counts():
    made = LiveCounts()
    made.phase, made.predictions, made.calls, made.kept = "asking", 20, 100, 20
    made.in_flight, made.retried = 4, 2
    made.states.update({"ok": 9, "failed": 1})
    made.began = time.time() - 60
    for _ in range(20):
        made.count_paid(Usage(input=100, output=10), Charge(0.01))
        made.count_end(is_answered=True)
    return made


def test_everything_that_matters_is_told_by_calls(counts):
    assert dict(progress_text(counts)) == {
        "cases": "10 of 20 done: 9 ok, 1 failed",
        "calls": "4 in flight · 2 retried · 0 failed · 20 a minute · about 3 min left",
        "spent": "2,000 tokens in, 200 out · $0.20",
    }
    assert progress_line(counts).startswith("asking: 40 of 100 calls (40 %) · 4 in flight")


def test_what_is_not_known_is_said_so(counts):
    counts.count_paid(None, Charge(None))
    assert "cost unknown" in dict(progress_text(counts))["spent"]
    counts.cost_usd, counts.is_least_cost = 0.5, True
    assert "at least $0.50" in dict(progress_text(counts))["spent"]
    assert dict(progress_text(LiveCounts()))["calls"] == "0 in flight · 0 retried · 0 failed"


def test_the_budget_the_reason_of_retries_and_the_latency_are_told(counts):
    counts.max_usd, counts.reasons["rate_limit"] = 0.21, 2
    counts.latencies.extend([1.0, 2.0, 40.0])
    told = dict(progress_text(counts))
    assert "2 retried: rate limit" in told["calls"] and "median 2.0 s" in told["calls"]
    assert told["spent"].endswith("$0.20 of $0.21: ends in about 2 calls")
    counts.reasons["timeout"] = 1
    assert "2 rate limit, 1 timeout" in dict(progress_text(counts))["calls"]


def test_a_program_gets_a_line_of_json_at_intervals(counts, capfdbinary):
    with LiveProgress(line_every_s=0.01, as_json=True) as progress:
        progress.follow(counts)
        said = b""
        while b"\n" not in said:
            said += capfdbinary.readouterr().out
            time.sleep(0.01)
    live = json.loads(said.splitlines()[0])["live"]
    assert (live["phase"], live["done"], live["calls_per_minute"]) == ("asking", 20, 20)


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (90, "90 s"), (150, "2 min"), (9000, "2 h 30 min")])
def test_a_time_left_is_told_in_words(seconds, words):
    assert describe_time(seconds) == words


def test_the_block_is_small_and_names_the_phase(counts):
    stream = io.StringIO()
    counts.phase, counts.detail = "waiting", "no server answers"
    Console(file=stream, width=80).print(progress_block(counts))
    shown = stream.getvalue().splitlines()
    assert len(shown) <= 5
    assert shown[0].startswith("waiting (no server answers)")


def test_a_terminal_gets_the_block_and_is_left_clean(counts):
    stream = io.StringIO()
    with LiveProgress(screen=Console(file=stream, width=100, force_terminal=True)) as progress:
        progress.follow(counts)
        progress._live.refresh()
    assert "40 of 100 calls (40 %)" in stream.getvalue()


def test_elsewhere_a_line_comes_at_intervals_and_at_once_when_it_waits(counts):
    stream = io.StringIO()
    with LiveProgress(screen=Console(file=stream, width=100), line_every_s=0.01) as progress:
        progress.follow(counts)
        progress.enter("waiting", "no server answers")
        while "40 of 100" not in stream.getvalue():
            time.sleep(0.01)
    assert "waiting: no server answers" in stream.getvalue()
    silent = io.StringIO()
    with LiveProgress(screen=Console(file=silent, width=100)) as progress:
        progress.follow(counts)
    assert silent.getvalue() == ""


RUNNING = (Path(__file__).parents[3] / "docs" / "running.md").read_text()


def counts_of(text: str) -> LiveCounts:
    """The counts that a sample of the docs is about."""

    def number(pattern: str) -> int:
        return int(re.search(pattern, text)[1].replace(",", ""))

    counts = LiveCounts()
    counts.phase, counts.cost_usd = "asking", None
    counts.calls, counts.done = number(r" of ([\d,]+) calls"), number(r"([\d,]+) of [\d,]+ calls")
    counts.in_flight, counts.predictions = number(r"([\d,]+) in flight"), number(r" of ([\d,]+) done")
    counts.states.update({"ok": number(r"([\d,]+) of [\d,]+ done")})
    counts.states = +counts.states
    counts.input_tokens, counts.output_tokens = number(r"([\d,]+) tokens in"), number(r"([\d,]+) out")
    counts.per_minute = lambda: number(r"([\d,]+) a minute")
    counts.latencies.append(float(re.search(r"median ([\d.]+) s", text)[1]))
    counts.time_left_s = lambda: number(r"about ([\d,]+) s")
    return counts


def test_the_docs_show_the_line_and_the_status_as_they_are_printed():
    shown = re.search(r"```text\n\d\d:\d\d:\d\d (asking: .*)\n```", RUNNING)[1]
    assert progress_line(counts_of(shown)) == shown
    status = re.search(r"```text\n\$ medthink status.*?```", RUNNING, re.DOTALL)[0]
    counts = counts_of(status)
    for name, text in (("state", f"running: {describe_phase(counts)}"), *progress_text(counts)):
        assert f"\n{name:<20}{text}\n" in status


def test_another_terminal_sees_the_same_while_it_runs(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=8)
    server = Server("--script", ",,,," + ",".join(["hang"] * 40), "--hang", "200")  # four good answers
    try:
        words = ("run", bench, "--model", "server/m", "--base-url", f"{server.url}/v1", "--task", "twi")
        working = medthink(*words, "--concurrency", 2, "--out", tmp_path / "run")
        server.wait_for(6)
        code, out, err = finish(medthink("status", tmp_path / "run", env={"COLUMNS": "160"}))
        told = json.loads(finish(medthink("status", tmp_path / "run", "--json"))[1])["live"]
        working.send_signal(signal.SIGINT)
        finish(working)
    finally:
        server.stop()
    assert (code, err) == (0, "")
    assert "running: asking: 4 of 32 calls (12 %)" in out
    assert "in flight" in out
    assert (told["phase"], told["is_running"], told["calls"], told["predictions"]) == ("asking", True, 32, 8)
    assert (told["done"], told["in_flight"]) == (4, 2)
    _, out, _ = finish(medthink("status", tmp_path / "run"))
    assert "unfinished" in out
