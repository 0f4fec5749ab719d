"""A judge that misbehaves never yields a wrong verdict: it is asked again, and in the end the units are unjudged.

`MEDTHINK_KILLS=100 pytest tests/faults/test_judge_faults.py -k kill` runs the long form of the kill test.
"""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from judge_server import JudgeServer, contradict, judge_step, judge_well, step_verdict
from judged_run import RATIONALE, SUMMARY, make_discussions, make_run, rewrite
from killing import check_repeats, draw_waits, kill_and_resume
from ledger_rows import read_rows
from medthink.judge.judged import load_judged, read_judgements, score_judged
from medthink.judge.session import JudgeSpec, judge_run
from medthink.judge.units import read_units
from medthink.models.limits import Backoff, RateLimits
from medthink.models.request import ModelError
from medthink.models.transport import Transport
from medthink.runs.run import Run
from processes import finish, medthink

KILLS = int(os.environ.get("MEDTHINK_KILLS", "5"))
CONCURRENCY = 4
JUDGES = ("server/a", "server/b")
NONCE = re.compile(r"BEGIN DATA ([0-9a-f]{32})")


def form(nonce, verdicts) -> str:
    return json.dumps({"call": nonce, "verdicts": verdicts})


def all_well(data) -> list[dict]:
    """The verdicts that a text would like to have."""
    return [step_verdict(unit) for unit in data["units"]]


def rename(verdict, old, new):
    return {new if key == old else key: value for key, value in verdict.items()}


BAD = {
    "short": ("wrong_ids", lambda n, d, o: form(n, all_well(d)[:-1])),
    "empty list": ("wrong_ids", lambda n, d, o: form(n, [])),
    "long": ("wrong_ids", lambda n, d, o: form(n, [*all_well(d), step_verdict({"id": "abcdefabcdef"})])),
    "duplicate": ("wrong_ids", lambda n, d, o: form(n, [*all_well(d), all_well(d)[0]])),
    "one merged into its neighbour": ("wrong_ids", lambda n, d, o: form(n, [all_well(d)[0], *all_well(d)[2:]])),
    "by position": ("wrong_ids", lambda n, d, o: form(n, [v | {"id": str(k)} for k, v in enumerate(all_well(d))])),
    "no ids": ("wrong_form", lambda n, d, o: form(n, [rename(v, "id", "step") for v in all_well(d)])),
    "a word as a list": ("wrong_form", lambda n, d, o: form(n, [v | {"rests_on": "findings"} for v in all_well(d)])),
    "a number as a word": ("wrong_form", lambda n, d, o: form(n, [v | {"weight": 0} for v in all_well(d)])),
    "factual as truth": ("wrong_form", lambda n, d, o: form(n, [v | {"factual": True} for v in all_well(d)])),
    "another word": ("wrong_form", lambda n, d, o: form(n, [v | {"factual": "Supported"} for v in all_well(d)])),
    "null": ("wrong_form", lambda n, d, o: form(n, [v | {"factual": None} for v in all_well(d)])),
    "more fields": ("wrong_form", lambda n, d, o: form(n, [v | {"note": "x"} for v in all_well(d)])),
    "more beside the verdicts": (
        "wrong_form",
        lambda n, d, o: json.dumps({"call": n, "verdicts": all_well(d), "x": 1}),
    ),
    "one type twice": (
        "wrong_form",
        lambda n, d, o: form(n, [contradict(u, error_types=["reasoning"] * 2) for u in d["units"]]),
    ),
    "another type": (
        "wrong_form",
        lambda n, d, o: form(n, [contradict(u, error_types=["other"]) for u in d["units"]]),
    ),
    "rests on nowhere": ("wrong_form", lambda n, d, o: form(n, [v | {"rests_on": ["image 9"]} for v in all_well(d)])),
    "rests on no name": ("wrong_form", lambda n, d, o: form(n, [v | {"rests_on": []} for v in all_well(d)])),
    "no reason": ("wrong_form", lambda n, d, o: form(n, [v | {"reason": " "} for v in all_well(d)])),
    "right and wrong at once": (
        "contradictory",
        lambda n, d, o: form(n, [v | {"error_types": ["reasoning"]} for v in all_well(d)]),
    ),
    "wrong for no type": (
        "contradictory",
        lambda n, d, o: form(n, [contradict(u, error_types=[]) for u in d["units"]]),
    ),
    "wrong without severity": (
        "contradictory",
        lambda n, d, o: form(n, [contradict(u, severity="not applicable") for u in d["units"]]),
    ),
    "wrong without correction": (
        "contradictory",
        lambda n, d, o: form(n, [contradict(u, correction=" ") for u in d["units"]]),
    ),
    "unverifiable with a type": (
        "contradictory",
        lambda n, d, o: form(n, [v | {"factual": "unverifiable", "error_types": ["reasoning"]} for v in all_well(d)]),
    ),
    "right with a severity": (
        "contradictory",
        lambda n, d, o: form(n, [v | {"severity": "minor"} for v in all_well(d)]),
    ),
    "another call": ("wrong_call", lambda n, d, o: form("0" * 32, all_well(d))),
    "two objects": ("not_json", lambda n, d, o: form(n, all_well(d)) * 2),
    "twice the same key": ("not_json", lambda n, d, o: form(n, all_well(d))[:-1] + ', "verdicts": []}'),
    "prose alone": ("not_json", lambda n, d, o: "Sure! All of them are supported. Anything else?"),
    "a list": ("not_json", lambda n, d, o: json.dumps(all_well(d))),
    "an echo of the data": ("wrong_form", lambda n, d, o: json.dumps(d)),
}


def judge(run, server, **changes):
    transport = Transport(pace=RateLimits(concurrency=4), timeout_s=120)
    order = {"run": run, "judges": ("server/bad",), "base_urls": (server.url,), "splitter": "sentences"}
    # Without a schema the transport takes any text, and all depends on the reading here.
    return judge_run(JudgeSpec(**(order | {"use_schema": False} | changes)), transport=transport)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_reply_is_asked_for_again_and_ends_unjudged_and_never_as_a_verdict(name, tmp_path):
    why, answer = BAD[name]
    run = make_run(tmp_path, cases=1)
    with JudgeServer(answer) as server:
        judge(run, server)
        assert len(server.bodies) == 3
    (row,) = read_judgements(run)
    assert (row.state, row.why, row.verdicts, row.tries) == ("unjudged", why, (), 3)
    (scores,) = score_judged(load_judged(run, Run.open(run).cases()), {})["steps"]
    assert scores.steps == 0
    assert scores.errors.n == 0
    assert not scores.coverage.is_complete
    assert scores.coverage.unjudged == {why: 1}


def test_thinking_without_an_answer_is_asked_for_once_more_and_is_no_verdict(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(lambda n, d, o: "<think>well, " + form(n, all_well(d))) as server:
        judge(run, server)
        assert len(server.bodies) == 2
    (row,) = read_judgements(run)
    assert (row.state, row.why, row.verdicts) == ("unjudged", "failed", ())


def test_reordered_verdicts_find_their_steps(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(lambda n, d, o: form(n, [judge_step(unit) for unit in reversed(d["units"])])) as server:
        judge(run, server)
    (row,) = read_judgements(run)
    assert [step.factual for step in row.verdicts] == ["supported", "contradicted", "supported"]


def test_a_judge_that_mends_its_reply_is_heard_and_told_only_what_we_say(tmp_path):
    run = make_run(tmp_path, cases=1)
    seen = []

    def answer(nonce, data, outside):
        seen.append(outside)
        if len(seen) == 1:
            return form(nonce, [v | {"factual": "EVIL WORDS"} for v in all_well(data)])
        return judge_well(nonce, data, outside)

    with JudgeServer(answer) as server:
        judge(run, server)
    (row,) = read_judgements(run)
    assert (row.state, row.tries) == ("ok", 2)
    assert "Your last reply could not be used" in seen[1]
    assert "EVIL" not in seen[1]


def test_fenced_json_and_finished_thinking_are_read(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(lambda n, d, o: f"<think>hm</think>\n```json\n{judge_well(n, d, o)}\n```") as server:
        judge(run, server)
    assert read_judgements(run)[0].state == "ok"


def test_json_that_quotes_the_end_of_thinking_is_read(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(lambda n, d, o: judge_well(n, d, o).replace("as the findings say", "it says </think>")) as server:
        judge(run, server)
    (row,) = read_judgements(run)
    assert (row.state, row.verdicts[0].reason) == ("ok", "it says </think>")


@pytest.mark.parametrize("reply", ["```json\n{}\n```", "Sure! {} Anything else?"])
def test_with_a_schema_a_form_in_a_fence_or_amid_prose_is_read(reply, tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(lambda n, d, o: reply.replace("{}", judge_well(n, d, o))) as server:
        judge(run, server, use_schema=True)
        assert len(server.bodies) == 1
    (row,) = read_judgements(run)
    assert (row.state, row.why) == ("ok", None)


def test_with_a_schema_prose_alone_is_asked_for_again_by_the_judge_not_by_the_transport(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(lambda n, d, o: "Sure! All supported.") as server:
        judge(run, server, use_schema=True)
        assert len(server.bodies) == 3
    (row,) = read_judgements(run)
    assert (row.state, row.why) == ("unjudged", "not_json")


def test_with_a_schema_a_splitter_that_writes_prose_falls_back_to_sentences(tmp_path):
    run = make_run(tmp_path, cases=1)

    def answer(nonce, data, outside):
        return "Here are the steps." if "rationale" in data else judge_well(nonce, data, outside)

    with JudgeServer(answer) as server:
        judge(run, server, use_schema=True, splitter=None)
    assert next(iter(read_units(run).values())).detail.startswith("not_json")
    assert read_judgements(run)[0].state == "ok"


@pytest.mark.parametrize(("reason", "why"), [("length", "truncated"), ("content_filter", "refused")])
def test_a_cut_off_or_filtered_reply_is_not_read_however_whole_it_looks(reason, why, tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(judge_well, finish_reason=reason) as server:
        judge(run, server)
    (row,) = read_judgements(run)
    assert (row.state, row.why, row.verdicts) == ("unjudged", why, ())


def test_a_provider_that_will_not_look_at_the_prompt_has_refused(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(judge_well) as server:
        server.reply = lambda body: {"error": {"code": "content_filter", "message": "not this one"}}
        judge(run, server)
    (row,) = read_judgements(run)
    assert (row.state, row.why, row.verdicts) == ("unjudged", "refused", ())


def test_a_server_that_is_gone_leaves_the_units_unjudged_until_it_is_back(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(judge_well) as server:
        gone = server.url
    patience = Transport(
        pace=RateLimits(concurrency=1), timeout_s=2, backoff=Backoff(first_s=0.001, most_s=0.001, patience_s=0.05)
    )
    order = JudgeSpec(run=run, judges=("server/bad",), base_urls=(gone,), splitter="sentences", preflight=False)
    with pytest.raises(ModelError, match="unreachable"):
        judge_run(order, transport=patience)
    assert read_judgements(run) == []
    with JudgeServer(judge_well) as server:
        judge(run, server, use_schema=True)
    (row,) = read_judgements(run)
    assert row.state == "ok"


def test_a_splitter_that_is_gone_is_not_replaced_for_good(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(judge_well) as server:
        gone = server.url
    patience = Transport(
        pace=RateLimits(concurrency=1), timeout_s=2, backoff=Backoff(first_s=0.001, most_s=0.001, patience_s=0.05)
    )
    with pytest.raises(ModelError, match="unreachable"):
        judge_run(JudgeSpec(run=run, judges=("server/bad",), base_urls=(gone,), preflight=False), transport=patience)
    assert read_judgements(run) == []
    assert not (run / "units.jsonl").exists()


@pytest.mark.parametrize("change", [{"reason": ""}, {"rests_on": []}, {"rests_on": ["image 9"]}, {"support": "yes"}])
def test_a_statement_without_reason_or_grounds_is_unjudged(change, tmp_path):
    run = make_run(tmp_path, cases=1)
    rewrite(run, [{"prediction_twi": SUMMARY}])

    def answer(nonce, data, outside):
        reply = json.loads(judge_well(nonce, data, outside))
        return json.dumps(reply | {"verdicts": [verdict | change for verdict in reply["verdicts"]]})

    with JudgeServer(answer) as server:
        judge(run, server, what=("findings",))
    (row,) = read_judgements(run)
    assert (row.state, row.why, row.verdicts) == ("unjudged", "wrong_form", ())


def test_every_try_of_every_repeat_is_a_call_of_its_own(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(lambda *_: "no") as server:
        judge(run, server, repeats=3)
        assert len(server.bodies) == 9
    assert [(row.repeat, row.tries) for row in read_judgements(run)] == [(0, 3), (1, 3), (2, 3)]


EDUCATION = [
    ("four dimensions", lambda scores: scores[:-1]),
    ("one dimension twice", lambda scores: [*scores[:-1], scores[0]]),
    ("one score too many", lambda scores: [*scores, scores[0]]),
    ("three of two", lambda scores: [score | {"score": 3} for score in scores]),
    ("half", lambda scores: [score | {"score": 1.5} for score in scores]),
    ("one as text", lambda scores: [score | {"score": "1"} for score in scores]),
    ("a 0 for no reason", lambda scores: [score | {"score": 0} for score in scores]),
    ("a reason for 0 without a 0", lambda scores: [score | {"zero": "wrong"} for score in scores]),
    ("true", lambda scores: [score | {"score": True} for score in scores]),
]


@pytest.mark.parametrize("change", [change for _, change in EDUCATION], ids=[name for name, _ in EDUCATION])
def test_a_bad_score_of_education_leaves_the_whole_discussion_unjudged(change, tmp_path):
    run = make_discussions(tmp_path, cases=1)

    def answer(nonce, data, outside):
        reply = json.loads(judge_well(nonce, data, outside))
        return json.dumps(reply | {"education": change(reply["education"])})

    with JudgeServer(answer) as server:
        judge(run, server)
    (row,) = read_judgements(run)
    assert (row.state, row.verdicts) == ("unjudged", ())


def test_judging_that_nobody_answered_exits_3_with_the_reason(tmp_path, start_server):
    # Of an answer without a rationale nobody is asked.
    run = make_run(tmp_path, rationales=["", RATIONALE, RATIONALE])
    server = start_server("--faults", "400", "--fault-rate", "1.0")
    for more in ([], ["--segmenter", "sentences"]):
        words = ["judge", run, "--judge", "server/a", "--base-url", f"{server.url}/v1", "--json", *more]
        code, out, err = finish(medthink(*words))
        assert code == 3
        assert "no judge answered: " in err and "that is wrong" in err
        assert json.loads(out)["steps"][0]["coverage"]["judged"] == 0
    assert finish(medthink("judge", run, "--judge", "baseline/rules"))[0] == 0


def test_a_judge_with_a_wrong_key_is_one_message_and_takes_nothing_from_the_others(tmp_path, start_server):
    run = make_run(tmp_path, cases=12)
    good, bad = start_server("--latency", "0.05"), start_server("--faults", "401", "--fault-rate", "1.0")
    env = {"OPENAI_API_KEY": "sk-wrong", "OPENAI_BASE_URL": f"{bad.url}/v1"}
    env |= {"ANTHROPIC_API_KEY": "sk-right", "ANTHROPIC_BASE_URL": good.url}
    judges = ["--judge", "openai/gpt-5.2", "--judge", "openai/gpt-5.1", "--judge", "anthropic/claude-opus-4-6"]
    code, _, err = finish(medthink("judge", run, *judges, "--segmenter", "sentences", "--max-tokens", "99", env=env))
    assert code == 3
    assert err.count("check OPENAI_API_KEY") == 1
    assert "Traceback" not in err
    judged = [row for row in read_judgements(run) if row.state == "ok"]
    assert {(row.case, row.judge) for row in judged} == {
        (case, "anthropic/claude-opus-4-6") for case in range(100, 112)
    }


def test_a_dead_judge_is_told_at_once_or_waited_for_as_long_as_patience_lasts(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        gone = server.url
    words = ["judge", run, "--judge", "server/a", "--base-url", gone]
    code, _, err = finish(medthink(*words))
    assert (code, f"no server answers at {gone}" in err, "check --base-url" in err) == (3, True, True)
    assert read_rows(run / "judge.sqlite", "SELECT count(*) FROM calls") == [(0,)]
    code, _, err = finish(medthink(*words, "--no-preflight", "--max-wait", "1", "--concurrency", "2"))
    assert (code, "waiting: " in err, "Traceback" in err) == (3, True, False)


def test_judging_that_failed_in_part_has_its_own_exit_code(tmp_path):
    run = make_run(tmp_path, cases=6)
    with JudgeServer(judge_well) as server:
        whole = server.reply
        server.reply = lambda body: {"error": {"code": 400}} if len(server.bodies) == 2 else whole(body)
        words = ["judge", run, "--judge", "server/a", "--base-url", server.url, "--segmenter", "sentences"]
        code, _, err = finish(medthink(*words, "--concurrency", "1"))
        assert (code, "1 of 6 judgements failed, such as case" in err) == (4, True)
        server.reply = whole
        assert finish(medthink(*words))[0] == 0


def judge_until_busy(run, server):
    """A process that judges a run, with all its places taken."""
    judges = [word for name in JUDGES for word in ("--judge", name)]
    words = ["judge", run, *judges, "--base-url", f"{server.url}/v1", "--segmenter", "sentences"]
    process = medthink(*words, "--concurrency", CONCURRENCY)
    server.wait_for(CONCURRENCY)
    return process


def test_ctrl_c_stops_judging_cleanly_and_says_how_to_go_on(tmp_path, start_server):
    run = make_run(tmp_path, cases=6)
    server = start_server("--hold-after", "0")
    process = judge_until_busy(run, server)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert "run the same command again" in err
    assert "Traceback" not in err
    assert server.requests == CONCURRENCY


def test_calls_that_waited_when_the_process_died_were_never_intended(tmp_path, start_server):
    run = make_run(tmp_path, cases=6)
    server = start_server("--hold-after", "0")
    process = judge_until_busy(run, server)
    process.send_signal(signal.SIGKILL)
    finish(process)
    assert read_rows(run / "judge.sqlite", "SELECT count(*) FROM calls WHERE state = 'open'") == [(CONCURRENCY,)]
    judge_run(JudgeSpec(run=run, judges=("baseline/rules",), splitter="sentences"))
    unknown = read_rows(run / "judge.sqlite", "SELECT count(*) FROM attempts WHERE outcome = 'unknown'")
    assert unknown == [(server.requests,)]


def finished_calls(run: Path) -> set[tuple[str, str]]:
    """The model and the nonce of every call that the ledger of judging has an answer to."""
    assert read_rows(run / "judge.sqlite", "PRAGMA integrity_check") == [("ok",)]
    rows = read_rows(run / "judge.sqlite", "SELECT request, reply FROM calls WHERE state = 'done'")
    return {(json.loads(reply)["model"], NONCE.search(request)[1]) for request, reply in rows}


def asked_of_server(record: dict) -> tuple[str, str] | None:
    """The same of a request that the server saw; one that a kill cut off has no body, and keeps its place."""
    if "body" not in record:
        return None
    return record["body"]["model"] + "-2026-01-01", NONCE.search(json.dumps(record["body"]))[1]


def verdicts(run: Path) -> dict[tuple, tuple]:
    return {(row.case, row.judge, row.state): row.verdicts for row in read_judgements(run)}


def test_kill_9_loses_no_finished_judgement_and_asks_for_none_again(tmp_path, start_server):
    cases = 6 + KILLS * 3
    run = make_run(tmp_path, cases=cases)
    never_killed = shutil.copytree(run, tmp_path / "never-killed")
    server = start_server("--latency", "0.03")
    flags = ["--base-url", f"{server.url}/v1", "--concurrency", CONCURRENCY]
    flags += [word for judge in JUDGES for word in ("--judge", judge)]
    words = ["judge", run, *flags]
    marks = kill_and_resume(words, server, waits=draw_waits(5, KILLS, 10), finished=lambda: finished_calls(run))
    asked = [asked_of_server(record) for record in server.ask("/_records")]
    check_repeats(marks, asked, concurrency=CONCURRENCY)
    # One call cuts each rationale, and each judge needs one more.
    assert len(finished_calls(run)) == cases * 3
    code, _, err = finish(medthink("judge", never_killed, *flags))
    assert code == 0, err
    assert verdicts(run) == verdicts(never_killed)
    assert set(verdicts(run)) == {(case, judge, "ok") for case in range(100, 100 + cases) for judge in JUDGES}
