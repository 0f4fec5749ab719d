"""Whatever happens outside, a run loses nothing, repeats nothing it finished, and says what it did.

`MEDTHINK_KILLS=100 pytest tests/faults/test_run_faults.py -k kill` runs the long form of the kill test.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from killing import check_repeats, draw_waits, kill_and_resume
from ledger_rows import read_rows
from medthink.runs.run import read_rows as read_index_rows
from processes import finish, medthink
from small_benchmark import write_benchmark

KILLS = int(os.environ.get("MEDTHINK_KILLS", "5"))
CONCURRENCY = 8
DEAREST_USD = 270 * 100.0 / 1_000_000
SCHEMA_OF = {"findings": "findings", "summary": "summary", "differential": "answer", "answer": "answer"}


def run_words(bench: Path, out: Path, url: str, *more: object) -> list[object]:
    words = ("run", bench, "--model", "server/m", "--base-url", f"{url}/v1", "--out", out)
    return [*words, "--concurrency", CONCURRENCY, *more]


def rows(out: Path, query: str) -> list[tuple]:
    return read_rows(out / "ledger.sqlite", query)


def predictions(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]


def asked_of_server(record: dict) -> tuple:
    """Which call a request was: its case, its step and its images."""
    text = json.dumps(record["body"])
    case = int(re.search(r"number (\d+) of the clinic", text)[1])
    return case, record["body"]["response_format"]["json_schema"]["name"], tuple(record["images"])


def finished_calls(out: Path) -> set[tuple]:
    assert rows(out, "PRAGMA integrity_check") == [("ok",)]
    found = set()
    for case, kind, request in rows(out, "SELECT case_id, kind, request FROM calls WHERE state = 'done'"):
        images = tuple(part[2] for part in json.loads(request)["parts"] if part[0] == "image")
        found.add((case, SCHEMA_OF[kind], images))
    return found


def test_with_a_third_of_the_calls_going_wrong_every_case_ends_and_every_attempt_is_counted(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=40)
    server = start_server("--seed", "11", "--fault-rate", "0.3", "--hang", "0.5")
    flags = ("--temperature", "0.3", "--max-tokens", "77", "--effort", "low", "--model-seed", "5")
    code, _, err = finish(medthink(*run_words(bench, tmp_path / "run", server.url, *flags)))
    assert code in (0, 4), err
    states = Counter(prediction["state"] for prediction in predictions(tmp_path / "run"))
    assert sum(states.values()) == 40
    assert set(states) <= {"ok", "failed"}
    assert states["ok"] > 30
    assert (code == 4) == (states["failed"] > 0)
    records = server.ask("/_records")
    ((attempts,),) = rows(tmp_path / "run", "SELECT count(*) FROM attempts WHERE is_sent")
    assert attempts == len(records)
    assert any(record["fault"] for record in records)
    whole = [record for record in records if "body" in record]
    names = ("temperature", "max_tokens", "reasoning_effort", "seed")
    assert {tuple(record["body"][name] for name in names) for record in whole} == {(0.3, 77, "low", 5)}
    assert all(len(record["images"]) == 2 for record in whole)


def test_a_dry_run_counts_what_the_run_then_sends(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=6)
    server = start_server()
    for number, task in enumerate(("answer", "twi")):
        words = run_words(bench, tmp_path / task, server.url, "--task", task, "--samples", "2")
        code, out, err = finish(medthink(*words, "--dry-run", "--json"))
        assert code == 0, err
        foreseen, before = json.loads(out), server.requests
        assert before == number * 12, "a dry run sends nothing"
        assert finish(medthink(*words))[0] == 0
        records = server.ask("/_records")[before:]
        assert (foreseen["calls"], foreseen["images"]) == (len(records), sum(len(one["images"]) for one in records))
        if task == "answer":  # later steps quote earlier replies, whose length nobody can foresee
            assert foreseen["upload_bytes"] == sum(int(one["headers"]["content-length"]) for one in records)


@pytest.mark.timeout(300 + 20 * KILLS)
def test_kill_9_loses_no_finished_call_and_asks_none_again(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=8 + KILLS * 4, images=2)
    out = tmp_path / "run"
    server = start_server("--latency", "0.03", "--lifetime", str(240 + 20 * KILLS))
    words = run_words(bench, out, server.url, "--task", "twi")
    marks = kill_and_resume(words, server, waits=draw_waits(4, KILLS, 14), finished=lambda: finished_calls(out))
    # A request that the kill cut off has no body, and keeps its place in the count.
    asked = [asked_of_server(record) if "body" in record else None for record in server.ask("/_records")]
    check_repeats(marks, asked, concurrency=CONCURRENCY)
    assert len(predictions(out)) == 8 + KILLS * 4
    ((attempts,),) = rows(out, "SELECT count(*) FROM attempts WHERE is_sent")
    assert attempts >= len(asked) - asked.count(None)
    assert attempts <= len(asked) + CONCURRENCY * KILLS, "calls that waited for a place were never sent"
    assert rows(out, "SELECT count(*) FROM calls WHERE state != 'done'") == [(0,)]


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=20)
    server = start_server("--hold-after", "0")
    process = medthink(*run_words(bench, tmp_path / "run", server.url))
    server.wait_for(CONCURRENCY)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert "run the same command again" in err
    assert "Traceback" not in err
    assert server.process.poll() is None
    outcomes = Counter(outcome for (outcome,) in rows(tmp_path / "run", "SELECT outcome FROM attempts"))
    assert outcomes == {"cancelled": server.requests}
    # Opening the ledger again finds no call whose end nobody knows.
    finish(medthink(*run_words(bench, tmp_path / "run", server.url, "--max-calls", "0")))
    assert rows(tmp_path / "run", "SELECT count(*) FROM attempts") == [(server.requests,)]


BUSY = """
import sys, time
from medthink.baselines.baseline import ChoosingBaseline
from medthink.cli.command import run_command

def learn(self, prompt, *, sample):
    print("learning", file=sys.stderr, flush=True)
    for _ in range(100_000):
        time.sleep(0.01)

ChoosingBaseline.answer = learn
sys.exit(run_command(sys.argv[1:]))
"""


def test_ctrl_c_stops_a_reader_that_learns_and_keeps_the_loop_busy(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=20)
    words = ["run", bench, "--model", "baseline/random", "--out", tmp_path / "run"]
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert "learning\n" in iter(process.stderr.readline, ""), "it ended before it learned"
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert "run the same command again" in err
    assert "Traceback" not in err
    assert rows(tmp_path / "run", "SELECT count(*) FROM attempts") == [(0,)]
    assert rows(tmp_path / "run", "SELECT DISTINCT state, error_kind FROM calls") == [("failed", "interrupted")]


SLOW_DISK = """
import sys, time
from medthink.cli.command import run_command
from medthink.runs.ledger.ledger import Ledger

close = Ledger.close

def close_slowly(self):
    time.sleep(2.5)
    close(self)

Ledger.close = close_slowly
sys.exit(run_command(sys.argv[1:]))
"""


def test_ctrl_c_does_not_cut_short_the_closing_of_the_ledger(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=20)
    server = start_server("--hold-after", "0")
    words = [sys.executable, "-c", SLOW_DISK, *map(str, run_words(bench, tmp_path / "run", server.url))]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.wait_for(CONCURRENCY)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130, err
    assert rows(tmp_path / "run", "SELECT DISTINCT state, error_kind FROM calls") == [("failed", "interrupted")]
    assert rows(tmp_path / "run", "SELECT DISTINCT outcome FROM attempts") == [("cancelled",)]


NOTEBOOK = """
import asyncio, sys, medthink

async def cell():
    medthink.run(sys.argv[1], model="server/m", out=sys.argv[2], base_urls=(sys.argv[3],))

try:
    asyncio.new_event_loop().run_until_complete(cell())
except KeyboardInterrupt:
    print("stopped")
"""


def test_interrupting_a_notebooks_cell_stops_the_run(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=20)
    server = start_server("--hold-after", "0")
    words = [sys.executable, "-c", NOTEBOOK, str(bench), str(tmp_path / "run"), f"{server.url}/v1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.wait_for(CONCURRENCY)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out) == (0, "stopped\n"), err
    assert rows(tmp_path / "run", "SELECT DISTINCT outcome FROM attempts") == [("cancelled",)]
    assert rows(tmp_path / "run", "SELECT DISTINCT error_kind FROM calls") == [("interrupted",)]


def test_a_second_process_is_refused_with_the_holders_name(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=20)
    server = start_server("--hold-after", "0")
    first = medthink(*run_words(bench, tmp_path / "run", server.url))
    server.wait_for(1)
    code, _, err = finish(medthink(*run_words(bench, tmp_path / "run", server.url)))
    assert code == 2
    assert f"in use by process {first.pid}" in err
    first.kill()
    finish(first)


def _allow_only(size: int):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_a_clean_error_and_what_was_written_stays(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=60)
    server = start_server()
    words = run_words(bench, tmp_path / "run", server.url)
    code, _, err = finish(medthink(*words, preexec_fn=_allow_only(400_000)))
    assert code == 2
    assert "ledger cannot be written" in err
    assert "Traceback" not in err
    kept = finished_calls(tmp_path / "run")
    assert kept
    # What was done is there to be read, as far as the disk took it.
    assert len(read_index_rows(tmp_path / "run")) > 0
    seen = server.requests
    code, _, err = finish(medthink(*words))
    assert code == 0, err
    assert not kept & {asked_of_server(record) for record in server.ask("/_records")[seen:]}
    assert len(predictions(tmp_path / "run")) == 60


def test_a_place_that_cannot_be_written_is_a_clean_error(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=2)
    code, _, err = finish(medthink("run", bench, "--model", "baseline/random", "--out", "/proc/nowhere/run"))
    assert code == 2
    assert "cannot be created" in err
    assert "Traceback" not in err


def _without_rights() -> list[str]:
    """What to put before a command so that file rights hold for root too."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and there is no setpriv here to give that up")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


def test_a_run_in_a_folder_that_cannot_be_written_can_be_read(tmp_path):
    bench, out = write_benchmark(tmp_path / "bench", cases=3), tmp_path / "run"
    run = ("run", bench, "--model", "baseline/random")
    assert finish(medthink(*run, "--out", out))[0] == 0
    out.chmod(0o555)
    prefix = _without_rights()
    try:
        code, shown, err = finish(medthink("status", out, prefix=prefix))
        assert (code, "3 of 3 done" in shown) == (0, True), err
        words = (*run[:-1], f"replay/{out}", "--out", tmp_path / "again")
        code, shown, err = finish(medthink(*words, prefix=prefix))
        assert (code, "3 ok" in shown) == (0, True), err
        code, _, err = finish(medthink(*run, "--out", out, prefix=prefix))
        assert (code, "cannot be written" in err) == (2, True)
    finally:
        out.chmod(0o755)


@pytest.mark.parametrize(
    ("model", "key", "url"),
    [
        ("openai/gpt-5.2", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("anthropic/claude-opus-4-6", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("google/gemini-3-pro", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    ],
)
def test_keys_appear_in_no_file_log_or_error(tmp_path, start_server, model, key, url):
    bench = write_benchmark(tmp_path / "bench", cases=6)
    server = start_server("--faults", "echo-key", "--fault-rate", "0.7", "--seed", "3")
    sentinel = "sk-SENTINEL-0a1b2c3d4e5f6071"
    words = ("run", bench, "--model", model, "--out", tmp_path / "run", "--max-tokens", "50")
    env = {key: sentinel, url: f"{server.url}/v1" if model.startswith("openai") else server.url, "COLUMNS": "200"}
    code, out, err = finish(medthink(*words, env=env))
    assert code == 4, err
    assert "failed" in out
    text = out + err
    for path in (tmp_path / "run").iterdir():
        text += path.read_bytes().decode("latin-1")
    for form in (sentinel, sentinel[:14], sentinel.encode().hex()):
        assert form not in text
    assert sum(1 for record in server.ask("/_records") if sentinel in json.dumps(record["headers"])) >= 6


def test_a_key_that_no_call_accepts_stops_the_run_after_a_few_cases(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=30)
    server = start_server("--faults", "401", "--fault-rate", "1.0")
    env = {"OPENAI_API_KEY": "sk-wrong", "OPENAI_BASE_URL": f"{server.url}/v1"}
    words = ("run", bench, "--model", "openai/gpt-5.2", "--out", tmp_path / "run", "--concurrency", "4")
    code, _, err = finish(medthink(*words, env=env))
    assert code == 3
    assert "the first 5 cases failed in the same way" in err
    assert "check OPENAI_API_KEY" in err
    assert server.requests <= 5 + 4


def test_a_run_that_nobody_answered_exits_3_and_one_that_failed_in_part_4(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=4)
    for rate, code, words in (("1.0", 3, "no case was answered"), ("0.5", 4, "of 4 predictions failed")):
        server = start_server("--faults", "400", "--fault-rate", rate, "--seed", "1")
        done, out, err = finish(medthink(*run_words(bench, tmp_path / rate, server.url, "--json")))
        assert done == code, err
        assert json.loads(out)["progress"]["states"]["failed"] > 0
        assert words in err


def test_failed_calls_are_made_again_by_the_next_run_and_finished_ones_never(tmp_path, start_server):
    bench, out = write_benchmark(tmp_path / "bench", cases=12), tmp_path / "run"
    sick, healthy = start_server("--faults", "400", "--fault-rate", "0.5", "--seed", "1"), start_server()
    assert finish(medthink(*run_words(bench, out, sick.url)))[0] == 4
    failed = {one["case"] for one in predictions(out) if one["state"] == "failed"}
    assert 0 < len(failed) < 12
    # The same run from another place: where the server stands is not part of what was asked.
    assert finish(medthink(*run_words(bench, out, healthy.url)))[0] == 0
    assert {asked_of_server(record)[0] for record in healthy.ask("/_records")} == failed
    assert healthy.requests == len(failed)
    assert all(one["state"] == "ok" for one in predictions(out))


def test_a_terminal_shows_cases_states_rate_and_spend_and_counts_no_earlier_call_into_the_rate(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=12)
    words = ["run", bench, "--model", "baseline/random", "--out", tmp_path / "run"]
    shown = [_on_terminal(words), _on_terminal(words)]
    for text in shown:
        assert "12 of 12 calls" in text and "12 of 12 done: 12 ok" in text and "$0.00" in text
    assert "a minute" not in shown[1]


def _on_terminal(words: list[object]) -> str:
    """What a run writes to a terminal on standard error."""
    mine, its = os.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "160"}
    with subprocess.Popen(
        [sys.executable, "-m", "medthink", *map(str, words)], stdout=subprocess.DEVNULL, stderr=its, env=env
    ):
        os.close(its)
        chunks = []
        with contextlib.suppress(OSError):  # how a terminal ends
            while chunk := os.read(mine, 65536):
                chunks.append(chunk)
    os.close(mine)
    return b"".join(chunks).decode()


def test_a_spending_limit_stops_before_it_is_passed_and_exits_1(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=30)
    server = start_server()
    prices = tmp_path / "prices.toml"
    prices.write_text('date = "2026-01-01"\n[models."server/m"]\ninput = 100.0\noutput = 100.0\n')
    more = ("--max-tokens", "20", "--image-share", "0")
    words = run_words(bench, tmp_path / "run", server.url, "--prices", prices, "--max-usd", "0.5", *more)
    code, _, err = finish(medthink(*words))
    assert code == 1
    assert "--max-usd" in err
    ((spent,),) = rows(tmp_path / "run", "SELECT sum(cost_usd) FROM attempts")
    # The first calls are set aside by estimate; after them the dearest one so far counts.
    assert 0 < spent <= 0.5 + CONCURRENCY * DEAREST_USD
    assert server.requests < 30


def test_a_server_that_counts_no_tokens_for_images_is_pointed_out(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=6)
    server = start_server("--faults", "blind", "--fault-rate", "1.0")
    words = run_words(bench, tmp_path / "run", server.url, "--task", "twi")
    wide = {"COLUMNS": "200"}
    caution = "24 of 24 replies report too few input tokens for their images: the server may be ignoring images"
    for more in (words, words, ["status", tmp_path / "run"]):
        code, out, err = finish(medthink(*more, env=wide))
        assert code == 0, err
        assert caution in out
    assert server.requests == 6 * 4


def test_a_server_that_counts_its_images_is_not_suspected(tmp_path, start_server):
    bench = write_benchmark(tmp_path / "bench", cases=6)
    words = run_words(bench, tmp_path / "run", start_server().url, "--task", "twi", "--json")
    code, out, err = finish(medthink(*words))
    assert code == 0, err
    progress = json.loads(out)["progress"]
    assert (progress["image_replies"], progress["image_doubts"]) == (24, 0)
