"""`--dry-run` of judges, exams and curation: what is left to ask is counted; nothing is sent or written."""

import json

import pytest

from drafts import draft
from expert_benchmark import write_expert_benchmark
from judge_server import JudgeServer, judge_well
from judged_run import make_run
from medthink.cli.command import run_command

PRICED = ("--price", "5/30")


@pytest.fixture
def told(capfdbinary, monkeypatch):
    """What a dry run prints as JSON; there is no key and no server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def run(*words):
        assert run_command([*map(str, words), "--dry-run", "--json"]) == 0
        return json.loads(capfdbinary.readouterr().out.splitlines()[-1])

    return run


def held(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_judging_is_counted_as_it_is_then_asked(tmp_path, told):
    run = make_run(tmp_path)
    before = held(run)
    counted = told("judge", run, "--judge", "openai/gpt-5.2", *PRICED)
    assert held(run) == before
    assert counted["cost_usd"] > 0 and counted["input_tokens"] > 500
    with JudgeServer(judge_well) as server:
        judge = ["judge", run, "--judge", "server/m", "--base-url", server.url, "--price", "1/1"]
        assert told(*judge)["calls"] == counted["calls"]
        assert run_command([*map(str, judge)]) == 0
        assert told(*judge)["calls"] == 0


def test_a_limit_on_calls_does_not_shorten_the_count(tmp_path, told):
    run = make_run(tmp_path)
    whole = told("judge", run, "--judge", "openai/gpt-5.2")
    assert told("judge", run, "--judge", "openai/gpt-5.2", "--max-calls", "1", "--max-usd", "0.001") == whole
    two = told("judge", run, "--judge", "openai/gpt-5.2,openai/gpt-5-mini", "--segmenter", "sentences")
    one = told("judge", run, "--judge", "openai/gpt-5.2", "--segmenter", "sentences")
    assert two["calls"] == 2 * one["calls"]


def test_an_exam_is_counted_without_being_made(tmp_path, told):
    bench, out = write_expert_benchmark(tmp_path / "expert", cases=3), tmp_path / "exam"
    assert told("exam", bench, "--judge", "openai/gpt-5.2", "-o", out)["calls"] > 3
    assert not out.exists()


def test_a_stage_is_counted_without_a_work_folder(tmp_path, told):
    cases, work = tmp_path / "cases.jsonl", tmp_path / "work"
    cases.write_bytes(b"".join(json.dumps(draft(n).row()).encode() + b"\n" for n in (1, 2, 3)))
    asked = ("--work", work, "--model", "openai/gpt-5.2", *PRICED)
    assert told("curate", "timeline", cases, *asked)["calls"] <= 3
    leaks = told("curate", "leaks", cases, *asked)
    assert leaks["calls"] == 3 and leaks["cost_usd"] > 0
    assert not work.exists()
