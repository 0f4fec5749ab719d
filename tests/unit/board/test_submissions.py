"""Submissions go from received to published or to a clear end; quotas hold, files count once, nothing is lost."""

import json
import random
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from medthink.board.exports import export_board
from medthink.board.history import history, states_at
from medthink.board.moderation import (
    annotate,
    approve,
    discard,
    flag,
    publish,
    raise_provenance,
    request_approval,
    return_to_team,
    withdraw,
)
from medthink.board.queue import Upload, claim, enforce_deadlines, fail, receive, recheck, renew_lease
from medthink.board.ranking import make_leaderboard
from medthink.board.results import read_rivals
from medthink.board.submissions import (
    LEVELS,
    ModelDescription,
    QueueProgress,
    find_submission,
    list_submissions,
    queue_position,
    read_file,
    read_scores,
    transition,
)
from medthink.board.worker import process_next, process_submission, refresh_rankings
from medthink.core.clock import now_utc
from medthink.core.errors import DataError, Declined, OutsideError, UsageError
from medthink.store import tables
from medthink.store.backup import restore_backup, write_backup
from medthink.store.engine import Store, record_event, store_url
from medthink.web.board.cache import BoardCache


def upload(entered, data: bytes, team="north", **fields):
    return Upload(benchmark_id=entered.id, team=team, model="made-7b", data=data, **fields)


def test_a_good_file_is_scored_previewed_and_published(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"), about=ModelDescription(organisation="Clinic"))).token
    assert process_next(store, {entered.id: held}).token == token
    scored = find_submission(store, token)
    assert (scored.status, scored.provenance, scored.about.organisation) == ("scored", "scored", "Clinic")
    right = sum(case.reference.answer == "A" for case in held.cases.values()) / 12
    assert read_scores(store, scored.id).answers.accuracy.value == pytest.approx(right)
    assert publish(store, token, actor="ann").status == "published"
    gone = withdraw(store, token, actor="ann", why="trained on the test split")
    assert (gone.status, gone.reason) == ("withdrawn", "trained on the test split")
    assert [one["what"] for one in history(store, gone.id)] == [
        "received", "checking", "scored", "published", "withdrawn",
    ]  # fmt: skip


def test_a_bad_file_names_its_problems_and_costs_no_quota(store, held, entered, lines):
    bad = lines("A").replace(b'"A"', b'"F"', 1)
    token = receive(store, upload(entered, bad), per_day=1).token
    process_next(store, {entered.id: held})
    found = find_submission(store, token)
    assert found.status == "invalid"
    assert [str(one) for one in found.problems] == ["line 1, prediction: “F” is not one of A, B, C, D, E"]
    assert receive(store, upload(entered, lines("B")), per_day=1).is_new


def test_the_same_file_of_a_team_is_the_same_submission(store, held, entered, lines):
    first = receive(store, upload(entered, lines("A")), per_day=1)
    again = receive(store, upload(entered, lines("A")), per_day=1)
    assert (again.token, again.is_new) == (first.token, False)
    assert receive(store, upload(entered, lines("A"), team="south")).token != first.token
    assert read_file(store, find_submission(store, first.token).file_sha256) == lines("A")


def test_the_quota_holds_under_parallel_uploads(store, held, entered, lines):
    files = [lines("A", note=number) for number in range(40)]
    start = threading.Barrier(20)

    def send(data: bytes) -> bool:
        start.wait(timeout=60)
        try:
            return receive(store, upload(entered, data), per_day=5).is_new
        except Declined:
            return False

    with ThreadPoolExecutor(20) as pool:
        taken = sum(pool.map(send, files))
    assert taken == 5
    assert len(list_submissions(store, team="north")) == 5


def test_workers_never_take_the_same_submission(store, held, entered, lines):
    for number in range(8):
        receive(store, upload(entered, lines("A", note=number)))
    with ThreadPoolExecutor(8) as pool:
        taken = [one.token for one in pool.map(lambda _: claim(store), range(12)) if one]
    assert len(taken) == len(set(taken)) == 8


def test_what_a_dead_worker_held_is_taken_again_after_its_deadline(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"))).token
    first = claim(store)
    assert first.token == token
    assert claim(store) is None
    expire(store, lease_at=LONG_AGO)
    assert process_next(store, {entered.id: held}).token == token
    assert find_submission(store, token).status == "scored"
    # The first worker was slow, not dead: what it says now is not heard.
    publish(store, token, actor="ann")
    assert fail(store, first, "too late") is False
    assert find_submission(store, token).status == "published"


def test_what_kills_every_worker_fails_after_three_tries(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A")), per_day=1).token
    for _ in range(3):
        assert claim(store).token == token
        expire(store, lease_at=LONG_AGO)
    assert claim(store) is None
    assert (found := find_submission(store, token)).status == "failed" and "interrupted 3 times" in found.reason
    assert receive(store, upload(entered, lines("B")), per_day=1).is_new
    with pytest.raises(Declined):
        receive(store, upload(entered, lines("A")), per_day=1)
    again = receive(store, upload(entered, lines("A")), per_day=2)
    assert (again.token, again.is_new, find_submission(store, token).status) == (token, False, "received")


def test_a_worker_that_is_at_it_keeps_its_lease_and_tells_how_far_it_is(store, held, entered, lines):
    receive(store, upload(entered, lines("A")))
    found = claim(store)
    expire(store, lease_at=LONG_AGO)
    renew_lease(store, found, QueueProgress(done=5, of=12, problems=1))
    assert claim(store) is None
    assert find_submission(store, found.token).progress == QueueProgress(done=5, of=12, problems=1)


def test_every_waiting_state_has_an_end(store, held, entered, lines):
    waiting = receive(store, upload(entered, lines("A"))).token
    expire(store)
    assert enforce_deadlines(store) == 1
    assert find_submission(store, waiting).status == "failed"
    preview = receive(store, upload(entered, lines("B"))).token
    process_next(store, {entered.id: held})
    expire(store)
    assert enforce_deadlines(store) == 1
    assert find_submission(store, preview).status == "lapsed"
    offered = receive(store, upload(entered, lines("C"))).token
    process_next(store, {entered.id: held})
    request_approval(store, offered, actor="ann")
    hanging = receive(store, upload(entered, lines("D"))).token
    claim(store)
    expire(store)
    assert enforce_deadlines(store) == 2
    assert [find_submission(store, token).status for token in (offered, hanging)] == ["lapsed", "failed"]


LONG_AGO = "2000-01-01T00:00:00Z"


def expire(store, **values):
    with store.write() as connection:
        connection.execute(tables.submissions.update().values(values or {"deadline_at": LONG_AGO}))


def scored(store, held, entered, data, **fields):
    token = receive(store, upload(entered, data, **fields)).token
    process_next(store, {entered.id: held})
    return find_submission(store, token)


def test_a_preview_says_where_it_would_stand_and_what_changed(store, held, entered, lines):
    first = scored(store, held, entered, lines("A"))
    assert (first.preview.rank, first.preview.among, first.preview.difference) == (None, 1, None)
    publish(store, first.token, actor="ann")
    perfect = [{"title": case.title, "prediction": case.reference.answer} for case in held.cases.values()]
    data = "".join(json.dumps(row) + "\n" for row in perfect).encode()
    second = scored(store, held, entered, data)
    assert (second.preview.rank, second.preview.worst, second.preview.among) == (1, 1, 2)
    assert second.preview.last_token == first.token and second.preview.is_different
    right = sum(case.reference.answer == "A" for case in held.cases.values()) / 12
    assert second.preview.difference.value == pytest.approx(1 - right)
    other = scored(store, held, entered, lines("B"), team="south")
    assert other.preview.last_token == "" and other.preview.among == 2
    cued = scored(store, held, entered, lines("C"), about=ModelDescription(is_expert_cued=True))
    assert (cued.preview.among, cued.preview.last_token) == (1, "")


def test_a_board_of_uploads_alone_has_rivals_and_gains(store, held, entered, lines):
    first = scored(store, held, entered, lines("A"))
    assert first.preview.gain is not None and first.preview.rival
    publish(store, first.token, actor="ann")
    made = make_leaderboard(store, entered)
    assert made.rivals and made.rows[0].gain.gain == first.preview.gain


def test_an_older_board_gets_its_rivals_from_a_worker(store, held, entered):
    refresh_rankings(store, {entered.id: held})
    assert read_rivals(store, entered.id)


def test_a_quota_of_publications_holds_for_those_at_once_too(store, held, entered, lines):
    tokens = [scored(store, held, entered, lines(letter)).token for letter in "ABCDE"]
    start = threading.Barrier(5)

    def try_publishing(token: str) -> bool:
        start.wait(timeout=60)
        try:
            publish(store, token, actor="ann", per_week=2)
        except Declined:
            return False
        return True

    with ThreadPoolExecutor(5) as pool:
        assert sum(pool.map(try_publishing, tokens)) == 2
    rest = [token for token in tokens if find_submission(store, token).status == "scored"]
    with pytest.raises(Declined, match="of 2 allowed"):
        request_approval(store, rest[0], actor="ann", per_week=2)


def test_of_two_who_publish_and_discard_at_once_one_does(store, held, entered, lines):
    token = scored(store, held, entered, lines("A")).token
    start = threading.Barrier(2)

    def attempt(does) -> bool:
        start.wait(timeout=60)
        try:
            does(store, token, actor="ann")
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(attempt, (publish, discard))) == 1


def test_maintainers_approve_decline_annotate_and_flag(store, held, entered, lines):
    token = scored(store, held, entered, lines("A")).token
    with pytest.raises(UsageError, match="only one that is offered"):
        approve(store, token, actor="boss")
    request_approval(store, token, actor="ann")
    with pytest.raises(UsageError, match="reason"):
        return_to_team(store, token, actor="boss", why=" ")
    assert return_to_team(store, token, actor="boss", why="which checkpoint?").status == "scored"
    request_approval(store, token, actor="ann")
    assert approve(store, token, actor="boss").status == "published"
    assert annotate(store, token, actor="boss", words="re-run in May").annotation == "re-run in May"
    assert flag(store, token, actor="boss", why="trained on the test split?").flag.startswith("trained")
    assert flag(store, token, actor="boss", why="").flag == ""
    number = find_submission(store, token).id
    told = [(one["actor"], one["what"]) for one in history(store, number)]
    assert told[3:] == [
        ("ann", "offered"), ("boss", "scored"), ("ann", "offered"), ("boss", "published"),
        ("boss", "annotated"), ("boss", "flagged"), ("boss", "flagged"),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="only one that is failed"):
        recheck(store, token, actor="boss")


def test_the_place_in_the_queue_is_known(store, held, entered, lines):
    tokens = [receive(store, upload(entered, lines(letter))).token for letter in "ABC"]
    assert [queue_position(store, find_submission(store, token)) for token in tokens] == [1, 2, 3]
    process_next(store, {entered.id: held})
    assert [queue_position(store, find_submission(store, token)) for token in tokens] == [None, 1, 2]


def test_a_worker_takes_no_submission_of_a_benchmark_that_it_does_not_hold(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"))).token
    assert process_next(store, {}) is None and process_next(store, {entered.id + 1: held}) is None
    assert find_submission(store, token).status == "received"
    assert process_next(store, {entered.id: held}).token == token


def test_a_stale_worker_is_not_heard_while_another_checks(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"))).token
    stale = claim(store)
    expire(store, lease_at=LONG_AGO)
    living = claim(store)
    assert stale.lease != living.lease
    assert not fail(store, stale, "too late") and not renew_lease(store, stale, QueueProgress())
    assert renew_lease(store, living, QueueProgress(done=3))
    process_submission(store, living, held)
    assert find_submission(store, token).status == "scored"


def test_what_failed_through_our_fault_counts_again_when_it_is_checked_again(store, held, entered, lines):
    tokens = []
    for letter in "ABCDE":
        tokens.append(receive(store, upload(entered, lines(letter)), per_day=2).token)
        fail(store, claim(store), "the disk was full")
    assert find_submission(store, tokens[0]).reason == "the disk was full"
    for token in tokens[:2]:
        recheck(store, token, actor="ann", per_day=2)
    for token in tokens[2:]:
        with pytest.raises(Declined, match="2 files within a day, of 2"):
            recheck(store, token, actor="ann", per_day=2)
    assert [find_submission(store, token).status for token in tokens] == ["received"] * 2 + ["failed"] * 3


def test_a_published_row_never_lapses(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"))).token
    process_next(store, {entered.id: held})
    number = publish(store, token, actor="ann").id
    with store.write() as connection:
        assert not transition(connection, number, ("scored",), "lapsed", actor="deadline", why="late")
    assert find_submission(store, token).status == "published"
    assert [one["what"] for one in history(store, number)][-1] == "published"


def test_a_change_that_commits_late_is_not_missed(new_store):
    """Two writers of PostgreSQL: the one that began first commits last."""
    store = new_store()
    if store.is_sqlite:
        pytest.skip("one writer at a time")
    live = BoardCache(store)
    seen = [live.version()]
    with store.write() as early:
        record_event(early, None, "ann", "published", {})
        with store.write() as late:
            record_event(late, None, "ben", "published", {})
        seen.append(live.version())
    seen.append(live.version())
    assert len(set(seen)) == 3


class Clock:
    """A clock that tests set."""

    strftime, gmtime = staticmethod(time.strftime), staticmethod(time.gmtime)

    def __init__(self) -> None:
        self.at = 1_700_000_000.0

    def time(self) -> float:
        return self.at


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("medthink.core.clock.time", made)
    return made


def _send(store, rng, held, entered, lines):
    receive(store, upload(entered, lines(rng.choice("ABCDE"), note=rng.randrange(9)), team=rng.choice("NS")))
    if rng.random() < 0.8:
        process_next(store, {entered.id: held})


def _die(store):
    """A worker that stops in the middle of its check, or one that finds such a one's submission."""
    found = claim(store)
    if found is not None:
        with store.write() as connection:
            same = tables.submissions.c.id == found.id
            connection.execute(tables.submissions.update().where(same).values(lease_at=LONG_AGO))


def _be_late(store, token):
    with store.write() as connection:
        same = tables.submissions.c.token == token
        connection.execute(tables.submissions.update().where(same).values(deadline_at=LONG_AGO))
    enforce_deadlines(store)


def _judge(store, token):
    with store.write() as connection:
        record_event(connection, find_submission(store, token).id, "boss", "judged", {"profiles": []})


ACTS = {
    "publish": lambda store, token, rng: publish(store, token, actor="ann"),
    "offer": lambda store, token, rng: request_approval(store, token, actor="ann"),
    "approve": lambda store, token, rng: approve(store, token, actor="boss"),
    "decline": lambda store, token, rng: return_to_team(store, token, actor="boss", why="which checkpoint?"),
    "withdraw": lambda store, token, rng: withdraw(store, token, actor="ann", why="a mistake"),
    "discard": lambda store, token, rng: discard(store, token, actor="ann"),
    "again": lambda store, token, rng: recheck(store, token, actor="ann"),
    "flag": lambda store, token, rng: flag(store, token, actor="boss", why=rng.choice(("", "trained on it?"))),
    "note": lambda store, token, rng: annotate(store, token, actor="boss", words="re-run in May"),
    "proof": lambda store, token, rng: raise_provenance(store, token, rng.choice(LEVELS), actor="boss", why="a test"),
    "late": lambda store, token, rng: _be_late(store, token),
    "judged": lambda store, token, rng: _judge(store, token),
    "dies": lambda store, token, rng: _die(store),
}


def _act(store, rng, held, entered, lines):
    """Something that someone tries, whether or not it is possible now."""
    known = [one.token for one in list_submissions(store)]
    if not known or rng.random() < 0.25:
        _send(store, rng, held, entered, lines)
    else:
        ACTS[rng.choice(list(ACTS))](store, rng.choice(known), rng)


def _explained(store, entered):
    """Every submission as its own events tell it, and as it is."""
    states = states_at(store, entered.id, "9")
    known = list_submissions(store)
    return [states[one.id].of(one) for one in known], known


@pytest.mark.parametrize("seed", range(3))
def test_an_export_of_a_past_moment_never_changes(store, held, entered, lines, clock, seed):
    rng, seen = random.Random(seed), {}
    for _ in range(40):
        clock.at += 10
        with suppress(UsageError, Declined):
            _act(store, rng, held, entered, lines)
        then = now_utc()
        seen[then] = export_board(make_leaderboard(store, entered, then), "json")
    assert len(set(seen.values())) > 10
    for then, exported in seen.items():
        assert export_board(make_leaderboard(store, entered, then), "json") == exported, then


def test_events_explain_every_state_whatever_several_clients_do(store, held, entered, lines):
    def client(seed):
        rng = random.Random(seed)
        for _ in range(25):
            with suppress(UsageError, Declined):
                _act(store, rng, held, entered, lines)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(client, range(4)))
    told, known = _explained(store, entered)
    assert told == known
    assert len({one.status for one in known}) > 3


def test_only_what_is_scored_can_be_published(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"))).token
    with pytest.raises(UsageError, match="is received; only one that is scored"):
        publish(store, token, actor="ann")
    with pytest.raises(UsageError, match="no submission"):
        publish(store, "nothing", actor="ann")
    with pytest.raises(UsageError, match="name is missing"):
        receive(store, upload(entered, lines("A"), team=" "))


def test_a_backup_under_load_is_one_moment_and_comes_back_whole(store, new_store, entered, lines, tmp_path):
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set() and number < 500:
            receive(store, upload(entered, lines("A", note=number)))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        counts = [write_backup(store, tmp_path / f"{number}.zip") for number in range(5)]
    finally:
        stop.set()
        writer.join()
    for count in counts:
        assert count["submissions"] == count["events"] == count["files"]
    other = new_store()
    assert restore_backup(tmp_path / "4.zip", other) == counts[-1]
    assert rows_of(other) != []
    write_backup(other, tmp_path / "again.zip")
    third = new_store()
    restore_backup(tmp_path / "again.zip", third)
    assert rows_of(third) == rows_of(other)
    receive(third, upload(entered, lines("E")))


def rows_of(store):
    with store.read() as connection:
        return [
            tuple(row)
            for table in tables.metadata.sorted_tables
            for row in connection.execute(sa.select(table).order_by(*table.primary_key.columns))
        ]


def test_a_backup_is_refused_by_a_filled_store_and_damaged_ones_are_named(store, held, entered, lines, tmp_path):
    write_backup(store, tmp_path / "b.zip")
    with pytest.raises(UsageError, match="not empty"):
        restore_backup(tmp_path / "b.zip", store)
    (tmp_path / "c.zip").write_bytes(b"no zip")
    with pytest.raises(DataError, match="not a backup"):
        restore_backup(tmp_path / "c.zip", store)


def test_a_store_of_the_first_release_gets_todays_tables(tmp_path):
    """A change of `tables.py` without its migration fails here; the file is never made anew."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as old:
        old.executescript((Path(__file__).parents[2] / "snapshot/store-0001.sql").read_text())
    versions = set()
    for name in ("old", "new"):
        with closing(Store(store_url(tmp_path / f"{name}.sqlite"))) as store, store.read() as connection:
            found = MigrationContext.configure(connection)
            assert compare_metadata(found, tables.metadata) == []
            versions.add(found.get_current_revision())
    assert len(versions) == 1


def test_an_address_that_leads_nowhere_is_one_message(tmp_path):
    with pytest.raises(UsageError, match="not the address of a store"):
        Store("nonsense://x")
    with pytest.raises(OutsideError, match="cannot be opened"):
        Store(store_url(tmp_path / "missing" / "board.sqlite"))
