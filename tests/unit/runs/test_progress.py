"""What a session counts while it works, and what another process reads of it."""

import time

import msgspec
import pytest

from medthink.models.prices import Charge
from medthink.models.request import Usage
from medthink.runs.ledger.lock import lock_run
from medthink.runs.manifest import RunSpec
from medthink.runs.progress import LIVE, LiveCounts, ProgressFile, ProgressTracker
from medthink.runs.run import read_status
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import count_calls

TWI = Condition(findings="self", summary="self")


class Diary:
    """A listener that writes down what it is told, with the counts at that moment."""

    def __init__(self) -> None:
        self.counts = LiveCounts()
        self.phases: list[str] = []
        self.seen: list[tuple[int, bool]] = []

    def follow(self, counts) -> None:
        self.counts = counts

    def enter(self, phase, detail) -> None:
        self.phases.append(phase)

    def see(self, prediction, *, is_kept=False) -> None:
        self.seen.append((self.counts.predicted, is_kept))


def follow(benchmark, out, **changes) -> Diary:
    diary = Diary()
    told = {"benchmark": benchmark, "model": "baseline/retrieval", "out": out, "task": "twi", "condition": TWI}
    run_session(RunSpec(**(told | changes)), listener=diary)
    return diary


def test_a_session_names_its_phases_and_counts_its_calls(benchmark, tmp_path):
    diary = follow(benchmark, tmp_path / "run")
    assert diary.phases == ["checking", "fingerprinting", "preparing", "learning", "asking", "writing"]
    counts = diary.counts
    assert (counts.predictions, counts.predicted) == (12, 12)
    assert (counts.calls, counts.done, counts.kept, counts.failed, counts.in_flight) == (48, 48, 0, 0, 0)
    assert diary.seen[-1] == (12, False)
    assert counts.time_left_s() == 0
    assert not (tmp_path / "run" / LIVE).exists()


def test_what_earlier_sessions_answered_is_counted_as_kept(benchmark, tmp_path):
    follow(benchmark, tmp_path / "run", max_calls=10)
    counts = follow(benchmark, tmp_path / "run").counts
    assert (counts.calls, counts.kept + counts.done, counts.kept >= 10) == (48, 48, True)


def test_a_case_that_ends_early_takes_what_it_did_not_ask_off_the_total(benchmark, tmp_path):
    follow(benchmark, tmp_path / "other", task="answer", condition=Condition())
    counts = follow(benchmark, tmp_path / "twi", model=f"replay/{tmp_path / 'other'}").counts
    assert (counts.calls, counts.failed, counts.finished) == (24, 24, 24), "the two images of each case, and no more"


@pytest.mark.parametrize(
    ("task", "condition", "images", "calls"),
    [
        ("answer", Condition(), 5, 1),
        ("discussion", Condition(), 5, 1),
        ("twi", TWI, 5, 7),
        ("twi", TWI, 0, 1),
        ("twi", Condition(findings="self", summary="self", single_call=True), 5, 1),
        ("twi", Condition(findings="expert", summary="self"), 5, 2),
    ],
)
def test_the_calls_of_a_case_are_known_beforehand(task, condition, images, calls):
    assert count_calls(task, condition, images) == calls


def test_the_pace_is_that_of_the_last_minute():
    counts = LiveCounts()
    counts.calls, counts.began = 100, counts.began - 600
    for _ in range(30):
        counts.count_paid(Usage(input=10, output=2), Charge(0.5))
        counts.count_end(is_answered=True)
    counts.ends.extendleft([counts.began] * 50)
    assert counts.per_minute() == 30
    assert counts.time_left_s() == pytest.approx(140)
    assert (counts.input_tokens, counts.output_tokens, counts.cost_usd) == (300, 60, 15.0)
    counts.count_paid(None, Charge(None))
    counts.count_end(is_answered=False)
    assert counts.cost_usd is None
    assert len(counts.ends) == 31


def test_another_process_reads_the_same_counts(benchmark, tmp_path):
    out = tmp_path / "run"
    follow(benchmark, out, max_calls=10)
    status = read_status(out)
    assert (status.is_running, status.phase, status.in_flight) == (False, "ended", 0)
    with lock_run(out):
        tracker = ProgressTracker()
        tracker.announce_in(out)
        tracker.counts.predictions, tracker.counts.calls = 12, 48
        tracker.enter("waiting", "for the server")
        status = read_status(out)
    assert (status.is_running, status.phase, status.detail) == (True, "waiting", "for the server")
    assert (status.predictions, status.calls, status.done) == (12, 48, 10)
    assert status.snapshot()["calls_per_minute"] > 0
    assert read_status(out).phase == "ended", "nobody works on it, whatever was announced last"


def test_an_announcement_that_cannot_be_read_is_none(benchmark, tmp_path):
    follow(benchmark, tmp_path / "run")
    (tmp_path / "run" / LIVE).write_text("{")
    with lock_run(tmp_path / "run"):
        assert read_status(tmp_path / "run").phase == "ended"
    assert msgspec.json.decode(b'{"phase": "asking"}', type=ProgressFile).calls == 0


def test_the_time_left_after_a_slow_down_is_told_by_the_most_recent_calls():
    counts, now = LiveCounts(), time.time()
    counts.began, counts.calls, counts.done = now - 300, 398, 330
    # Ten a second, and one a second for the last half minute: 68 calls are left.
    counts.ends.extend([now - 60 + k / 10 for k in range(300)] + [now - 29.5 + k for k in range(30)])
    assert counts.time_left_s() == pytest.approx(68, rel=0.05)


def test_the_counts_say_how_many_calls_a_limit_still_allows():
    counts = LiveCounts()
    counts.calls, counts.done, counts.cost_usd, counts.max_usd = 100, 39, 0.078, 0.08
    assert counts.calls_affordable() == 1
    counts.max_usd = 5.0
    assert counts.calls_affordable() is None
    counts.max_calls = 45
    assert counts.calls_affordable() == 6


def test_the_log_of_a_run_has_its_phases_failures_and_counts_and_is_rotated(tmp_path, monkeypatch):
    tracker = ProgressTracker()
    tracker.announce_in(tmp_path)
    tracker.enter("asking")
    tracker.say("attempt 1 at http://localhost/v1:\n rate_limit")
    tracker.warn("the server may be ignoring images")
    tracker.counts.retried, tracker.counts.reasons["rate_limit"] = 1, 1
    tracker.leave()
    lines = [line.partition(" ")[2] for line in (tmp_path / "run.log").read_text().splitlines()]
    assert lines[:3] == [
        "asking",
        "attempt 1 at http://localhost/v1: rate_limit",
        "caution: the server may be ignoring images",
    ]
    assert lines[3].startswith("ended: 0 of 0 calls, 0 in flight, 1 retried (rate limit), 0 failed")
    monkeypatch.setattr("medthink.runs.progress._LOG_BYTES", 100)
    tracker.announce_in(tmp_path)
    for number in range(40):
        tracker.say(f"line {number:040}")
    tracker.leave()
    files = {path.name: path.stat().st_size for path in tmp_path.glob("run.log*")}
    assert set(files) <= {"run.log", "run.log.1", "run.log.2", "run.log.3"} and len(files) >= 3
    assert max(files.values()) < 400


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "run.log").mkdir()
    tracker = ProgressTracker()
    tracker.announce_in(tmp_path)
    tracker.say("a line")
    tracker.leave()
