"""Runs by batches: whatever happens at the provider or to the process, nothing is lost and nothing is run twice.

`MEDTHINK_KILLS=50 pytest tests/faults/test_batch_faults.py -k kill` runs the long form of the kill test.
"""

import json
import os
import random
import signal
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from batch_server import BatchServer
from msgspec.structs import replace

from ledger_rows import read_rows
from medthink.core.errors import UsageError
from medthink.models import transport
from medthink.models.batches import BatchLimits, openai
from medthink.models.batches.client import BatchClient
from medthink.models.limits import Backoff
from medthink.models.request import ModelError
from medthink.models.transport import Transport
from medthink.runs.batches import jobs, queue
from medthink.runs.batches.jobs import BatchTable, read_batches
from medthink.runs.batches.queue import RequestFileWriter
from medthink.runs.ledger.queries import LedgerQueries
from medthink.runs.manifest import RunSpec
from medthink.runs.selection import Selection, Shard
from medthink.runs.session import run_session
from medthink.runs.shards import merge_shards
from medthink.workflow.tasks import default_condition
from processes import Server, finish, medthink
from small_benchmark import write_benchmark

KILLS = int(os.environ.get("MEDTHINK_KILLS", "5"))
BATCH_SERVER = Path(__file__).with_name("batch_server.py")
SPECS = {
    "openai": ("openai/gpt-5.2", "/v1"),
    "chat": ("openai-chat/gpt-4o", "/v1"),
    "anthropic": ("anthropic/claude-opus-4-6", ""),
    "gemini": ("google/gemini-3-pro", ""),
}
THREE = ("openai", "anthropic", "gemini")
QUICK = Transport(backoff=Backoff(first_s=0.01, most_s=0.02, patience_s=5))


@pytest.fixture(autouse=True)
def quick_and_keyed(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "sk-SENTINEL-7f3a9c1e5b")
    monkeypatch.setattr(queue, "_FIRST_LOOK_S", 0.01)
    monkeypatch.setattr(queue, "_MOST_LOOK_S", 0.05)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("data") / "bench", cases=4)


@pytest.fixture
def start():
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(BatchServer(**options))


def order(bench, out, server, provider="openai", task="answer", **changes):
    spec, tail = SPECS[provider]
    condition = replace(default_condition(task), max_tokens=2000)
    known = {"benchmark": bench, "model": spec, "out": out, "task": task, "condition": condition, "batch": True}
    return RunSpec(**(known | {"base_urls": (server.url + tail,)} | changes))


def run(*words, **changes):
    return run_session(order(*words, **changes), transport=QUICK)


def rows(out, query):
    return read_rows(out / "ledger.sqlite", query)


def told(made):
    """What predictions say, without what differs from run to run."""
    return [replace(one, calls=(), cost_usd=None, latency_s=0.0) for one in made.run.predictions()]


class Crash(BaseException):
    """The process ends here."""


class CrashingMethod:
    """A method that crashes when it is called for the n-th time, before or after it did its work."""

    def __init__(self, owner, name, *, at, is_after):
        self._owner, self._name, self._at, self._is_after = owner, name, at, is_after
        self._calls = 0

    def __enter__(self):
        before = self._before = getattr(self._owner, self._name)

        def sync(*words, **more):
            self._step(is_after=False)
            made = before(*words, **more)
            self._step(is_after=True)
            return made

        async def waits(*words, **more):
            self._step(is_after=False)
            made = await before(*words, **more)
            self._step(is_after=True)
            return made

        setattr(self._owner, self._name, waits if before.__code__.co_flags & 0x80 else sync)
        return self

    def __exit__(self, *_):
        setattr(self._owner, self._name, self._before)

    def _step(self, *, is_after):
        if is_after == self._is_after and self._calls == self._at:
            raise Crash
        self._calls += is_after == self._is_after


def crash(step, work):
    """Whether the work came so far as to crash at this step."""
    with step:
        try:
            work()
        except Crash:
            return True
    return False


@pytest.mark.parametrize("provider", SPECS)
@pytest.mark.parametrize(("task", "sizes"), [("answer", [4]), ("twi", [8, 4, 4]), ("discussion", [4])])
def test_a_batch_run_says_what_an_online_run_says_for_half_the_price(tmp_path, bench, start, provider, task, sizes):
    server = start()
    made = run(bench, tmp_path / "batch", server, provider, task)
    assert [len(job.rows) for job in server.jobs] == sizes
    assert made.calls_made == sum(sizes) and not made.jobs
    progress = made.run.manifest.progress
    assert progress.is_complete and progress.calls == {"done": sum(sizes)} and progress.attempts == sum(sizes)
    assert not list((tmp_path / "batch" / "batches").iterdir())
    online = run(bench, tmp_path / "online", server, provider, task, batch=False)
    assert len(server.online) == sum(sizes)
    assert told(made) == told(online)
    assert [one.latency_s for one in made.run.predictions()] == [None] * 4
    # Gemini bills the 10 cached tokens of each call as outside a batch.
    cached_usd = sum(sizes) * 10 * 0.2 / 1e6 if provider == "gemini" else 0
    assert progress.cost_usd == pytest.approx((online.run.manifest.progress.cost_usd + cached_usd) / 2)
    assert progress.reported_models == online.run.manifest.progress.reported_models


def test_neither_key_nor_anything_withheld_is_in_the_folder_or_in_what_is_sent(tmp_path, bench, start):
    server = start(faults=["slow"])
    run(bench, tmp_path / "run", server, wait=False)
    sent = json.dumps([job.rows for job in server.jobs])
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert "WITHHELD" not in sent and b"WITHHELD" not in kept
    assert "SENTINEL" not in sent and b"SENTINEL" not in kept


@pytest.mark.parametrize("provider", THREE)
def test_expired_rows_are_asked_again_and_cost_nothing(tmp_path, bench, start, provider):
    server = start(faults=["expire:2", "expire:1"])
    for _ in range(3):
        made = run(bench, tmp_path / "run", server, provider)
    assert [len(job.rows) for job in server.jobs] == [4, 2, 1]
    assert set(server.account()["run"].values()) == {1}
    assert made.run.manifest.progress.states == {"ok": 4} and made.run.manifest.progress.uncounted_replies == 0
    outcomes = rows(tmp_path / "run", "SELECT outcome, count(*) FROM attempts GROUP BY outcome ORDER BY 1")
    assert outcomes == [("expired", 3), ("ok", 4)]


@pytest.mark.parametrize("provider", THREE)
def test_run_log_has_no_key_prompt_reply_or_reference(tmp_path, bench, start, provider):
    server = start(faults=["expire:3+bad:1"])
    made = run(bench, tmp_path / "run", server, provider)
    log = (tmp_path / "run/run.log").read_text()
    assert "caution: " in log and len(log.splitlines()) > 3
    replies = {one.prediction_rationale for one in made.run.predictions() if one.prediction_rationale}
    asked = {case.question.history for case in made.run.cases().values()}
    assert replies and all(len(text) > 6 for text in replies | asked)
    assert [text for text in {"SENTINEL", "WITHHELD"} | replies | asked if text in log] == []


@pytest.mark.parametrize("provider", THREE)
@pytest.mark.parametrize("fault", ["expire:2", "partial:2"])
def test_what_expired_waits_for_the_next_command_and_is_told(tmp_path, bench, start, provider, fault):
    server = start(faults=[fault])
    made = run(bench, tmp_path / "run", server, provider)
    assert [len(job.rows) for job in server.jobs] == [4], "nothing is asked again by the session that waited for it"
    assert made.run.manifest.progress.states == {"ok": 2} and not made.run.manifest.progress.is_complete
    (told,) = made.warnings
    assert told.startswith(f"{server.jobs[0].id}: 2 calls expired") and "the same command asks again" in told
    again = run(bench, tmp_path / "run", server, provider)
    assert [len(job.rows) for job in server.jobs] == [4, 2] and not again.warnings
    assert again.run.manifest.progress.is_complete


def test_what_expired_before_a_command_is_asked_again_by_it(tmp_path, bench, start):
    server = start(faults=["slow+expire:2"])
    run(bench, tmp_path / "run", server, wait=False)
    server.end_slow_jobs()
    made = run(bench, tmp_path / "run", server)
    assert [len(job.rows) for job in server.jobs] == [4, 2] and not made.warnings
    assert made.run.manifest.progress.states == {"ok": 4}


def test_a_row_that_expires_every_time_fails_after_three_more_asks_and_may_be_asked_online(tmp_path, bench, start):
    server = start(faults=["expire:1"] * 9)
    for _ in range(4):
        made = run(bench, tmp_path / "run", server)
    assert [len(job.rows) for job in server.jobs] == [4, 1, 1, 1]
    assert made.run.manifest.progress.states == {"failed": 1, "ok": 3}
    again = run(bench, tmp_path / "run", server)
    assert len(server.jobs) == 4 and again.calls_made == 0, "it was asked often enough"
    failed = [one for one in again.run.predictions() if one.state == "failed"]
    assert "without --batch" in failed[0].detail
    online = run(bench, tmp_path / "run", server, batch=False)
    assert online.calls_made == 1 and online.run.manifest.progress.states == {"ok": 4}


@pytest.mark.parametrize("provider", THREE)
def test_rows_that_fail_at_the_server_are_asked_again_and_refused_ones_are_not(tmp_path, bench, start, provider):
    server = start(faults=["error:2"])
    assert run(bench, tmp_path / "error", server, provider).run.manifest.progress.states == {"ok": 4}
    assert [len(job.rows) for job in server.jobs] == [4, 2]
    server = start(faults=["bad:2"])
    assert run(bench, tmp_path / "bad", server, provider).run.manifest.progress.states == {"failed": 2, "ok": 2}
    assert [len(job.rows) for job in server.jobs] == [4]


@pytest.mark.parametrize("provider", THREE)
def test_results_that_pass_over_a_row_mark_the_cost(tmp_path, bench, start, provider):
    server = start(faults=["partial:1"])
    for _ in range(2):
        progress = run(bench, tmp_path / "run", server, provider).run.manifest.progress
    assert progress.states == {"ok": 4}
    assert [len(job.rows) for job in server.jobs] == [4, 1]
    assert progress.uncounted_replies == 1, "the provider may have billed what it did not give out"


def spent(out):
    with closing(LedgerQueries.open(out)) as records:
        return records.totals().spent


def paid(server):
    """How many answers the server was paid for."""
    return sum(server.account()["run"].values())


@pytest.mark.parametrize("provider", THREE)
def test_results_that_cannot_be_read_whole_are_told_and_nothing_is_sent_again(tmp_path, bench, start, provider):
    server = start(faults=["torn"])
    made = run(bench, tmp_path / "run", server, provider)
    assert made.run.manifest.progress.states == {"failed": 1, "ok": 3}
    (failed,) = [one for one in made.run.predictions() if one.state == "failed"]
    assert "cannot be read whole" in failed.detail
    assert (len(server.jobs), paid(server), spent(tmp_path / "run").uncounted) == (1, 4, 1)
    assert run(bench, tmp_path / "run", server, provider).run.manifest.progress.states == {"ok": 4}


@pytest.mark.parametrize("provider", THREE)
def test_foreign_results_of_our_own_job_stop_in_words_after_one_try(tmp_path, bench, start, provider):
    server = start(faults=["foreign"])
    with pytest.raises(ModelError, match="answer none of its requests"):
        run(bench, tmp_path / "run", server, provider)
    assert (len(server.jobs), paid(server)) == (1, 4)
    worst = 4 * 2000 * 12.0 / 1e6 / 2
    assert spent(tmp_path / "run").uncounted == 4 and spent(tmp_path / "run").cost_usd > worst


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_results_that_lag_behind_the_state_are_waited_for(tmp_path, bench, start, provider):
    server = start(faults=["late:4"])
    made = run(bench, tmp_path / "run", server, provider)
    assert made.run.manifest.progress.states == {"ok": 4} and made.run.manifest.progress.uncounted_replies == 0
    assert (len(server.jobs), paid(server)) == (1, 4)


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_results_that_never_come_are_held_until_they_are_given_up(tmp_path, bench, start, provider):
    server = start(faults=["late:1000000"])
    impatient = Transport(backoff=Backoff(first_s=0.01, most_s=0.02, patience_s=0.1))
    for _ in range(2):
        with pytest.raises(ModelError, match="does not give its results") as caught:
            run_session(order(bench, tmp_path / "run", server, provider), transport=impatient)
        assert f"--forget-batch {server.jobs[0].id}" in caught.value.remedy
        assert (len(server.jobs), paid(server)) == (1, 4)
    server.jobs[0].faults["late"] = 0
    assert run(bench, tmp_path / "run", server, provider).run.manifest.progress.states == {"ok": 4}
    assert (len(server.jobs), paid(server), spent(tmp_path / "run").uncounted) == (1, 4, 0)


def test_results_in_the_job_itself_without_our_keys_are_held_and_nothing_is_sent_again(tmp_path, bench, start):
    server = start(faults=["inline"])
    impatient = Transport(backoff=Backoff(first_s=0.01, most_s=0.02, patience_s=0.1))
    for _ in range(2):
        with pytest.raises(ModelError, match="does not give its results"):
            run_session(order(bench, tmp_path / "run", server, "gemini"), transport=impatient)
    assert len(server.jobs) == 1


def test_an_expired_job_that_did_some_of_its_work_is_held_too(tmp_path, bench, start):
    server = start(faults=["withheld"])
    impatient = Transport(backoff=Backoff(first_s=0.01, most_s=0.02, patience_s=0.1))
    with pytest.raises(ModelError, match="does not give its results"):
        run_session(order(bench, tmp_path / "run", server), transport=impatient)
    assert paid(server) == 4


@pytest.mark.parametrize("provider", THREE)
def test_a_lost_batch_is_told_and_may_be_given_up(tmp_path, bench, start, provider):
    server = start(faults=["slow"])
    out = tmp_path / "run"
    run(bench, out, server, provider, wait=False)
    job = server.jobs[0]
    job.faults["gone"] = 1
    for more in ({}, {"wait": False}):
        with pytest.raises(ModelError, match="does not know") as caught:
            run(bench, out, server, provider, **more)
        assert f"--forget-batch {job.id}" in caught.value.remedy
    for more in ({"batch": False}, {"batch": False, "cancel_batches": True}):
        made = run(bench, out, server, provider, **more)
        assert "does not know" in made.warnings[0] and not server.online and [one.job for one in made.jobs] == [job.id]
    with pytest.raises(UsageError, match=f"(?s)no batch b-0 is waiting.*{job.id}"):
        run(bench, out, server, provider, batch=False, forget_batches=("b-0",))
    made = run(bench, out, server, provider, batch=False, forget_batches=(job.id,))
    assert made.run.manifest.progress.states == {"ok": 4} and not made.jobs
    assert len(server.online) == 4 and spent(out).uncounted == 4


@pytest.mark.parametrize("provider", THREE)
@pytest.mark.parametrize("fault", ["twice", "bom"])
def test_an_answer_beside_an_error_or_after_a_mark_is_kept(tmp_path, bench, start, provider, fault):
    server = start(faults=[fault])
    progress = run(bench, tmp_path / "run", server, provider).run.manifest.progress
    assert progress.states == {"ok": 4} and progress.uncounted_replies == 0
    assert (len(server.jobs), paid(server)) == (1, 4)


def test_a_job_that_fails_midway_has_an_unknown_cost(tmp_path, bench, start):
    server = start(faults=["midway"])
    with pytest.raises(ModelError, match="rejected the batch"):
        run(bench, tmp_path / "run", server, "gemini")
    assert (len(server.jobs), spent(tmp_path / "run").uncounted) == (1, 4)


@pytest.mark.parametrize("provider", THREE)
def test_a_download_that_is_cut_off_is_made_again(tmp_path, bench, start, provider):
    server = start(faults=["cut"])
    progress = run(bench, tmp_path / "run", server, provider).run.manifest.progress
    assert progress.states == {"ok": 4} and progress.uncounted_replies == 0 and len(server.jobs) == 1


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_batch_that_is_rejected_ends_the_session_and_costs_nothing(tmp_path, bench, start, provider):
    server = start(faults=["reject"])
    with pytest.raises(ModelError, match="rejected the batch: a line is not valid"):
        run(bench, tmp_path / "run", server, provider)
    assert rows(tmp_path / "run", "SELECT state, error_kind FROM calls") == [("failed", "bad_request")] * 4
    assert rows(tmp_path / "run", "SELECT count(*) FROM attempts") == [(0,)]
    assert run(bench, tmp_path / "run", server, provider).run.manifest.progress.states == {"ok": 4}


@pytest.mark.parametrize(("is_named", "row_tokens"), [(True, 600), (False, 600), (True, 2_400)])
def test_a_cap_on_waiting_tokens_is_learnt_and_kept_to(tmp_path, start, is_named, row_tokens, monkeypatch):
    bench = write_benchmark(tmp_path / "bench", cases=12)
    server = start(token_cap=5_000, latency_s=0.05, row_tokens=row_tokens)
    if not is_named:
        monkeypatch.setattr(openai, "_CAP", openai.re.compile("never"))
    progress = run(bench, tmp_path / "run", server).run.manifest.progress
    assert progress.states == {"ok": 12} and progress.uncounted_replies == 0
    assert set(server.account()["run"].values()) == {1}
    crowded = [job for job in server.jobs if job.is_crowded]
    # Once it is known, it is not tried again; where the provider counts more than we do, it takes some tries.
    assert len(crowded) <= (1 if is_named and row_tokens == 600 else 4)


def test_without_waiting_a_full_queue_leaves_the_rest_for_later(tmp_path, start):
    bench = write_benchmark(tmp_path / "bench", cases=12)
    server = start(token_cap=5_000, latency_s=0.05)
    for _ in range(10):
        made = run(bench, tmp_path / "run", server, wait=False)
        if made.run.manifest.progress.is_complete:
            break
        time.sleep(0.06)
    assert made.run.manifest.progress.states == {"ok": 12}
    assert set(server.account()["run"].values()) == {1}


@pytest.mark.parametrize("limits", [BatchLimits(3, 10**9), BatchLimits(50_000, 9_000)])
def test_batches_are_cut_by_rows_and_by_bytes(tmp_path, bench, start, limits, monkeypatch):
    monkeypatch.setattr(openai, "LIMITS", limits)
    server = start()
    assert run(bench, tmp_path / "run", server).run.manifest.progress.states == {"ok": 4}
    assert len(server.jobs) > 1
    assert all(len(data) <= limits.size_bytes for data in server.files.values())
    assert max(len(job.rows) for job in server.jobs) <= limits.rows


@pytest.mark.parametrize("provider", THREE)
@pytest.mark.parametrize("fault", ["lost", "flood", "dead", "lost+expire:1"])
def test_a_start_that_nobody_knows_of_is_looked_for_before_it_is_tried_again(tmp_path, bench, start, provider, fault):
    server = start(faults=[fault])
    for _ in range(2 if "expire" in fault else 1):
        progress = run(bench, tmp_path / "run", server, provider).run.manifest.progress
    assert progress.states == {"ok": 4}
    assert set(server.account()["run"].values()) == {1}
    assert len(server.jobs) == (2 if "expire" in fault else 1)


def test_a_reply_that_is_too_large_is_not_read_to_its_end(tmp_path, bench, start, monkeypatch):
    monkeypatch.setattr(transport, "MAX_REPLY_BYTES", 100)
    with pytest.raises(ModelError, match="larger than 100 bytes"):
        run(bench, tmp_path / "run", start())


def test_a_job_of_somebody_else_is_taken_for_ours_only_until_its_results_show_it(tmp_path, bench, start):
    """Anthropic's jobs have no mark: another one of equal size may have been started in the same moment."""
    server = start()
    ours, theirs = (Selection(split="test", cases=cases) for cases in ((100, 101), (102, 103)))
    work = partial(run, bench, tmp_path / "one", server, "anthropic", selection=ours)
    assert crash(CrashingMethod(BatchClient, "_send", at=1, is_after=False), work)
    other = run(bench, tmp_path / "two", server, "anthropic", selection=theirs)
    assert other.run.manifest.progress.states == {"ok": 2} and len(server.jobs) == 1
    assert work().run.manifest.progress.states == {"ok": 2}
    assert len(server.jobs) == 2
    with closing(LedgerQueries.open(tmp_path / "one").connection) as connection:
        assert read_batches(connection)[0].strangers == ("batch_0",)


STEPS = [
    (RequestFileWriter, "close"),
    (BatchClient, "_send"),
    (BatchClient, "_download"),
    (BatchTable, "plan"),
    (BatchTable, "note_sent"),
    (BatchTable, "settle"),
    (BatchTable, "end"),
]


def test_a_crash_while_a_refused_batch_is_ended_sends_nothing_twice(tmp_path, bench, start, monkeypatch):
    server = start()
    work = partial(run, bench, tmp_path / "run", server)
    times = iter(["2026-01-02T03:04:05Z"])

    async def refuse(*_):
        raise ModelError("auth", "no such key")

    def note_time():
        """The batch is planned; when its end is written, the process ends."""
        if (noted := next(times, None)) is None:
            raise Crash
        return noted

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(BatchClient, "submit", refuse)
        patch.setattr(jobs, "now_utc", note_time)
        work()
    assert work().run.manifest.progress.states == {"ok": 4}
    assert [len(job.rows) for job in server.jobs] == [4]


@pytest.mark.parametrize("provider", THREE)
def test_a_crash_at_any_step_runs_nothing_twice(tmp_path, start, provider, monkeypatch):
    bench = write_benchmark(tmp_path / "bench", cases=3, images=1)
    monkeypatch.setattr("medthink.runs.batches.results._ROWS_AT_ONCE", 2)
    crashes = 0
    # What happens here is the same for all; what is sent is not.
    for owner, name in STEPS if provider == "openai" else STEPS[1:2]:
        for is_after in (False, True):
            for at in range(20):
                server = start(faults=["expire:1"])
                out = tmp_path / f"{name}-{is_after}-{at}"

                def work(words=(bench, out, server, provider)):
                    """Twice: what expires in one session is left to the next."""
                    run(*words)
                    return run(*words)

                if not crash(CrashingMethod(owner, name, at=at, is_after=is_after), work):
                    break
                made = work()
                where = f"{'after' if is_after else 'before'} {name} {at}"
                assert made.run.manifest.progress.states == {"ok": 3}, where
                assert set(server.account()["run"].values()) == {1}, where
                assert made.run.manifest.progress.uncounted_replies == 0, where
                assert made.run.manifest.progress.cost_usd > 0
                crashes += 1
    assert crashes >= 10


def test_what_was_sent_may_be_collected_later_and_finished_online(tmp_path, bench, start):
    server = start(faults=["slow"])
    made = run(bench, tmp_path / "run", server, task="twi", wait=False)
    assert [batch.calls for batch in made.jobs] == [8]
    assert not made.run.manifest.progress.is_complete and made.run.manifest.progress.calls == {"queued": 8}
    # While the job is under way, an online session asks nothing that waits in it.
    early = run(bench, tmp_path / "run", server, task="twi", batch=False)
    assert early.calls_made == 0 and not server.online and [batch.calls for batch in early.jobs] == [8]
    server.end_slow_jobs()
    online = run(bench, tmp_path / "run", server, task="twi", batch=False)
    assert online.calls_made == 8 and online.run.manifest.progress.states == {"ok": 4} and not online.jobs
    assert len(server.online) == 8 and set(server.account()["run"].values()) == {1}


def test_an_online_run_may_be_finished_by_batches(tmp_path, bench, start):
    server = start()
    assert run(bench, tmp_path / "run", server, task="twi", batch=False, max_calls=5).stopped_by is not None
    made = run(bench, tmp_path / "run", server, task="twi")
    assert made.run.manifest.progress.states == {"ok": 4} and made.calls_made == 11
    assert len(server.online) == 5


@pytest.mark.parametrize("provider", THREE)
def test_batches_can_be_cancelled_and_keep_what_they_answered(tmp_path, bench, start, provider):
    server = start(faults=["slow"])
    run(bench, tmp_path / "run", server, provider, wait=False)
    made = run(bench, tmp_path / "run", server, provider, batch=False, cancel_batches=True)
    assert made.run.manifest.progress.states == {"ok": 4} and not made.jobs
    assert len(server.online) == made.calls_made == 2


def test_money_is_set_aside_when_a_call_is_queued(tmp_path, bench, start):
    server = start()
    worst = 4 * 2000 * 14.0 / 1e6 / 2
    made = run(bench, tmp_path / "none", server, max_usd=0.001)
    assert made.stopped_by is not None and not server.jobs
    made = run(bench, tmp_path / "all", server, max_usd=worst * 1.2)
    assert made.stopped_by is None and [len(job.rows) for job in server.jobs] == [4]
    # Half of it fits at first; what the first batch really cost makes room for the others.
    server = start()
    made = run(bench, tmp_path / "half", server, max_usd=worst / 1.8)
    assert made.stopped_by is None and [len(job.rows) for job in server.jobs] == [2, 2]
    assert made.run.manifest.progress.cost_usd < worst / 1.8


def test_money_set_aside_by_an_earlier_session_stays_so(tmp_path, bench, start):
    server = start(faults=["slow"])
    limit = 2.5 * 2000 * 14.0 / 1e6 / 2
    assert [batch.calls for batch in run(bench, tmp_path / "run", server, max_usd=limit, wait=False).jobs] == [2]
    assert [batch.calls for batch in run(bench, tmp_path / "run", server, max_usd=limit, wait=False).jobs] == [2]
    online = run(bench, tmp_path / "run", server, max_usd=limit, batch=False)
    assert online.stopped_by is not None and len(server.jobs) == 1


def test_max_calls_counts_what_is_queued(tmp_path, bench, start):
    server = start()
    made = run(bench, tmp_path / "run", server, max_calls=3)
    assert made.stopped_by is not None and [len(job.rows) for job in server.jobs] == [3]
    made = run(bench, tmp_path / "run", server, max_calls=4)
    assert made.stopped_by is None and [len(job.rows) for job in server.jobs] == [3, 1]


def test_a_shard_with_calls_in_a_batch_is_not_merged(tmp_path, bench, start):
    server = start(faults=["", "slow"])
    shards = [Selection(split="test", shard=Shard(number, 2)) for number in (1, 2)]
    outs = [tmp_path / f"part{number}" for number in (1, 2)]
    run(bench, outs[0], server, selection=shards[0])
    run(bench, outs[1], server, selection=shards[1], wait=False)
    with pytest.raises(UsageError, match="is not finished"):
        merge_shards(tmp_path / "whole", outs)
    run(bench, outs[1], server, selection=shards[1], batch=False, cancel_batches=True)
    assert merge_shards(tmp_path / "whole", outs).manifest.progress.states == {"ok": 4}


@pytest.mark.parametrize("model", ["baseline/random", "replay/x"])
def test_a_model_without_batches_is_refused(tmp_path, bench, start, model):
    with pytest.raises(UsageError, match="does not support batches"):
        run(bench, tmp_path / "run", start(), model=model, base_urls=())


def run_words(bench, out, url, *more):
    words = ("run", bench, "--model", "openai/gpt-5.2", "--base-url", f"{url}/v1", "--out", out, "--batch")
    return [*words, "--max-tokens", 500, *more]


def test_status_shows_the_jobs_and_the_same_command_collects_them(tmp_path, bench, start):
    server = start(faults=["slow"])
    words = run_words(bench, tmp_path / "run", server.url)
    code, _, err = finish(medthink(*words, "--no-wait"))
    assert code == 0, err
    assert "4 calls waiting in 1 batch" in err
    code, out, _ = finish(medthink("status", tmp_path / "run"))
    assert code == 0 and "batch_0" in out and "4 calls" in out and "unfinished" in out
    code, out, _ = finish(medthink("status", tmp_path / "run", "--json"))
    assert [(one["job"], one["state"]) for one in json.loads(out)["batches"]] == [("batch_0", "sent")]
    server.end_slow_jobs()
    code, out, err = finish(medthink(*words))
    assert code == 0 and "complete" in out, err


def test_a_dry_run_counts_half_the_price(tmp_path, bench, start):
    url = start().url
    costs = []
    for flags in ((), ("--batch",)):
        words = [word for word in run_words(bench, tmp_path / "run", url) if word != "--batch"]
        code, out, err = finish(medthink(*words, *flags, "--dry-run", "--json"))
        assert code == 0, err
        costs.append(json.loads(out)["cost_usd"])
    assert costs[1] == pytest.approx(costs[0] / 2)


@pytest.mark.parametrize(
    "flags", [("--batch", "--stop-when", "5"), ("--no-wait",), ("--batch", "--base-url", "http://127.0.0.1:9/v1")]
)
def test_flags_that_do_not_go_together_are_refused(tmp_path, bench, start, flags):
    words = [word for word in run_words(bench, tmp_path / "run", start().url) if word != "--batch"]
    code, _, err = finish(medthink(*words, *flags))
    assert code == 2 and "→" in err


def test_ctrl_c_leaves_the_jobs_to_the_next_session(tmp_path, bench, start):
    server = start(faults=["slow"])
    process = medthink(*run_words(bench, tmp_path / "run", server.url))
    deadline = time.monotonic() + 60
    while not server.jobs and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130 and "Traceback" not in err
    server.end_slow_jobs()
    assert finish(medthink(*run_words(bench, tmp_path / "run", server.url)))[0] == 0
    assert set(server.account()["run"].values()) == {1}


def test_kill_9_at_random_instants_loses_nothing_and_runs_nothing_twice(tmp_path):
    """The instants are drawn over the whole life of a session, start-up included."""
    cases = 6 + KILLS
    bench = write_benchmark(tmp_path / "bench", cases=cases, images=1)
    chance, out = random.Random(11), tmp_path / "run"
    # A cap on waiting tokens makes many small jobs of it.
    faults = ",".join(["", "expire:2", "lost"] * 9)
    server = Server(
        "--latency", "0.4", "--faults", faults, "--token-cap", "7200", "--lifetime", "900", program=BATCH_SERVER
    )
    words = run_words(bench, out, server.url, "--task", "twi")
    try:
        for _ in range(KILLS):
            process = medthink(*words)
            seen = server.ask("/_account")["requests"]
            # Some by the clock, some by what the provider has seen: so that every part of the work is met.
            if chance.random() < 0.5:
                time.sleep(chance.uniform(0.3, 3.0))
            else:
                wait_for(server, seen + chance.randint(1, 12), process)
            process.send_signal(signal.SIGKILL)
            finish(process)
        # Calls that expire in a session are left to the next one.
        for _ in range(queue.MOST_ASKS):
            code, _, err = finish(medthink(*words))
            assert code == 0, err
        account = server.ask("/_account")
    finally:
        server.stop()
    assert set(account["run"].values()) == {1}, "nothing is run twice"
    assert len(account["run"]) == 3 * cases, "nothing is lost"
    assert rows(out, "PRAGMA integrity_check") == [("ok",)]
    assert rows(out, "SELECT count(*) FROM calls WHERE state != 'done'") == [(0,)]
    ((unseen, attempts),) = rows(out, "SELECT sum(outcome = 'unknown'), sum(outcome = 'ok') FROM attempts")
    assert (unseen, attempts) == (0, 3 * cases)
    print(f"{KILLS} kills: {len(account['jobs'])} jobs, {sum(len(job['rows']) for job in account['jobs'])} rows sent")


def wait_for(server, requests, process):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        if server.ask("/_account")["requests"] >= requests:
            return
        time.sleep(0.005)
