"""A run's cases as `medthink show` and the viewer read them: what was sent, what came back, what it came to."""

import json
import shutil

import pytest

from medthink.core.errors import UsageError
from medthink.runs.trace import UNFINISHED, SentImage, Trace
from processes import Server, finish, medthink


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """A run of three cases whose first request is refused for good."""
    from small_benchmark import write_benchmark

    root = tmp_path_factory.mktemp("trace")
    bench = write_benchmark(root / "bench", cases=3)
    server = Server("--script", "400,500")
    words = ("run", bench, "--model", "server/m", "--base-url", f"{server.url}/v1", "--task", "twi")
    finish(medthink(*words, "--concurrency", 1, "--temperature", 0, "--out", root / "run"))
    records = server.ask("/_records")
    server.stop()
    return root, records


def test_every_prompt_is_shown_as_it_was_sent_and_every_reply_as_it_came(traced):
    root, records = traced
    trace = Trace(root / "run")
    sent = {json.dumps([r["images"], r["body"]["messages"][0]["content"]]) for r in records if "body" in r}
    for row in trace.rows():
        for call in trace.case(row.case).calls:
            assert json.dumps([[one.digest for one in call.images], call.system]) in sent
            assert call.settings == {"temperature": 0.0}
            assert (call.reply is None) == (call.state != "done")
            for image in call.images:
                assert image.path == str(root / f"bench/images/case{row.case:05d}/i{row.case}x{image.slot}.jpg")
    trace.close()


def test_attempts_failures_and_right_or_wrong_are_told(traced):
    root, _ = traced
    trace = Trace(root / "run")
    rows = {row.case: row for row in trace.rows()}
    assert [row.state for row in rows.values()] == ["failed", "ok", "ok"]
    failed = [call for call in trace.case(100).calls if call.state == "failed"]
    assert [(call.error_kind, len(call.attempts)) for call in failed] == [("bad_request", 1)]
    retried = [call for case in rows for call in trace.case(case).calls if len(call.attempts) == 2]
    assert [one.outcome for call in retried for one in call.attempts] == ["server", "ok"]
    for case, row in rows.items():
        right = "ABCDE"[case % 5]
        assert row.is_right == (row.answer == right if row.state == "ok" else None)
        assert trace.case(case).correct == right
    with pytest.raises(UsageError, match="has not asked about case 7"):
        trace.case(7)
    trace.close()


def test_without_its_benchmark_right_and_wrong_and_paths_stay_unknown(traced, tmp_path):
    root, _ = traced
    run = shutil.copytree(root / "run", tmp_path / "run")
    trace = Trace(run, tmp_path / "nowhere")
    assert "no longer at" in trace.doubt
    assert {row.is_right for row in trace.rows()} == {None}
    images = [part for call in trace.case(101).calls for part in call.parts if isinstance(part, SentImage)]
    assert {image.path for image in images} == {None}
    trace.close()
    text = (root / "bench/test.jsonl").read_text()
    other = shutil.copytree(root / "bench", tmp_path / "bench")
    (other / "test.jsonl").write_text(text.replace("with pain", "without pain"))
    trace = Trace(run, other)
    assert "has changed" in trace.doubt
    trace.close()


def test_a_case_that_was_cut_short_is_unfinished(traced, tmp_path):
    import sqlite3
    from contextlib import closing

    root, _ = traced
    run = shutil.copytree(root / "run", tmp_path / "run")
    with closing(sqlite3.connect(run / "ledger.sqlite")) as ledger, ledger:
        ledger.execute("DELETE FROM predictions WHERE case_id = 101")
    trace = Trace(run)
    assert {row.case: row.state for row in trace.rows()}[101] == UNFINISHED
    assert trace.case(101).rows[0].state == UNFINISHED
    trace.close()
