"""Judging by batches says what judging online says, collects later, and runs nothing twice."""

import json
import shutil

import pytest
from batch_server import BatchServer

from expert_benchmark import write_expert_benchmark
from judged_run import make_discussions, make_run
from ledger_rows import read_rows
from medthink.judge.exam.make import ExamPlan
from medthink.judge.exam.run import ExamSpec, run_exam
from medthink.judge.judged import read_judgements
from medthink.judge.session import JudgeSpec, judge_run
from medthink.models.limits import Backoff
from medthink.models.transport import Transport
from medthink.runs.batches import queue
from processes import finish, medthink

JUDGES = ("openai/gpt-5.2", "openai-chat/gpt-4o")
QUICK = Transport(backoff=Backoff(first_s=0.01, most_s=0.02, patience_s=5))


@pytest.fixture(autouse=True)
def quick_and_keyed(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SENTINEL-7f3a9c1e5b")
    monkeypatch.setattr(queue, "_FIRST_LOOK_S", 0.01)


def judge(run, server, **changes):
    known = {"run": run, "judges": JUDGES, "base_urls": (f"{server.url}/v1",), "max_tokens": 500, "batch": True}
    return judge_run(JudgeSpec(**(known | changes)), transport=QUICK)


def verdicts(run):
    return {one.order: (one.state, one.verdicts, one.model) for one in read_judgements(run)}


def test_batches_of_two_judges_say_what_they_say_online_for_half_the_price(tmp_path):
    run = make_run(tmp_path)
    copy = shutil.copytree(run, tmp_path / "online")
    with BatchServer(faults=["expire:1", "error:1"]) as server:
        early = judge(run, server)
        assert len(early.judgements) == 4 and any("1 call expired" in told for told in early.warnings)
        session = judge(run, server)
        assert {one.state for one in session.judgements} == {"ok"} and len(session.judgements) == 6
        assert session.stopped_by is None and not session.jobs and early.calls_made + session.calls_made == 11
        assert set(server.account()["run"].values()) == {1}
        assert judge(run, server).calls_made == 0
        online = judge(copy, server, batch=False)
        assert online.calls_made == len(server.online) == 9
    assert verdicts(run) == verdicts(copy)
    costs = [read_rows(one / "judge.sqlite", "SELECT sum(cost_usd) FROM attempts")[0][0] for one in (run, copy)]
    assert costs[0] == pytest.approx(costs[1] / 2)
    assert not list((run / "judge-batches").iterdir())


def test_what_is_asked_step_by_step_and_again_takes_a_batch_for_each(tmp_path):
    """Lists of decisive findings, then verdicts, and replies in the wrong form asked for again."""
    run = make_discussions(tmp_path)
    copy = shutil.copytree(run, tmp_path / "online")
    with BatchServer() as server:
        settings = {"judges": JUDGES[:1], "what": ("discussion", "omissions")}
        judge(run, server, **settings)
        assert set(server.account()["run"].values()) == {1} and len(server.jobs) >= 3
        judge(copy, server, batch=False, **settings)
    assert verdicts(run) == verdicts(copy)


def test_what_waits_is_left_out_until_it_is_collected(tmp_path):
    run = make_run(tmp_path)
    with BatchServer(faults=["slow", "slow"]) as server:
        session = judge(run, server, wait=False, splitter="sentences")
        assert [one.calls for one in session.jobs] == [3, 3] and not session.judgements
        early = judge(run, server, batch=False, splitter="sentences")
        assert early.calls_made == 0 and len(early.jobs) == 2 and not server.online
        server.end_slow_jobs()
        online = judge(run, server, batch=False, splitter="sentences")
        assert {one.state for one in online.judgements} == {"ok"} and len(online.judgements) == 6
        assert not server.online


def test_an_exam_is_sat_by_batches(tmp_path):
    bench = write_expert_benchmark(tmp_path / "bench")
    with BatchServer() as server:
        asked = {"judges": JUDGES[:1], "batch": True, "max_tokens": 500, "base_urls": (f"{server.url}/v1",)}
        order = ExamSpec(out=tmp_path / "exam", benchmark=bench, plan=ExamPlan(items=4), **asked)
        session = run_exam(order, transport=QUICK)
        assert session.calls_made == sum(server.account()["run"].values()) > 0
        assert not session.jobs and session.results
        assert run_exam(order, transport=QUICK).calls_made == 0


def test_the_command_says_what_waits(tmp_path):
    run = make_run(tmp_path)
    with BatchServer(faults=["slow"]) as server:
        where = ("--base-url", f"{server.url}/v1", "--segmenter", "sentences")
        words = ("judge", run, "--judge", JUDGES[0], *where, "--batch")
        code, _, err = finish(medthink(*words, "--no-wait"))
        assert code == 0, err
        assert "3 calls waiting in 1 batch;" in err
        server.end_slow_jobs()
        code, out, err = finish(medthink(*words, "--json"))
        assert code == 0, err
        assert json.loads(out)["calls_made_now"] == 0


def test_an_embedded_judge_goes_along(tmp_path):
    run = make_run(tmp_path)
    with BatchServer() as server:
        session = judge(run, server, judges=("baseline/rules", JUDGES[0]), splitter="sentences")
        assert {one.judge for one in session.judgements} == {"baseline/rules", JUDGES[0]}
