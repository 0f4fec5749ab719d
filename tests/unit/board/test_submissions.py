"""Submissions go from received to published or to a clear end; quotas hold, files count once, nothing is lost."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.backup import restore_backup, write_backup
from medthink.board.store import BoardStore, store_url
from medthink.board.submissions import (
    About,
    Upload,
    claim,
    enforce_deadlines,
    find_submission,
    history,
    list_submissions,
    publish,
    queue_position,
    read_file,
    read_scores,
    receive,
    withdraw,
)
from medthink.board.worker import work_once
from medthink.core.errors import DataError, Declined, OutsideError, UsageError


def upload(entered, data: bytes, team="north", **fields):
    return Upload(benchmark_id=entered.id, team=team, model="made-7b", data=data, **fields)


def test_a_good_file_is_scored_previewed_and_published(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"), about=About(organisation="Clinic"))).token
    assert work_once(store, {entered.id: held}).token == token
    scored = find_submission(store, token)
    assert (scored.status, scored.provenance, scored.about.organisation) == ("scored", "scored", "Clinic")
    right = sum(case.reference.answer == "A" for case in held.cases.values()) / 12
    assert read_scores(store, scored.id).answers.accuracy.value == pytest.approx(right)
    assert publish(store, token, actor="ann").status == "published"
    gone = withdraw(store, token, actor="ann", why="trained on the test split")
    assert (gone.status, gone.detail) == ("withdrawn", "trained on the test split")
    assert [one["what"] for one in history(store, gone.id)] == [
        "received", "checking", "scored", "published", "withdrawn",
    ]  # fmt: skip


def test_a_bad_file_names_its_problems_and_costs_no_quota(store, held, entered, lines):
    bad = lines("A").replace(b'"A"', b'"F"', 1)
    token = receive(store, upload(entered, bad), per_day=1).token
    work_once(store, {entered.id: held})
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
    assert claim(store).token == token
    assert claim(store) is None
    expire(store)
    assert work_once(store, {entered.id: held}).token == token
    assert find_submission(store, token).status == "scored"


def test_every_waiting_state_has_an_end(store, held, entered, lines):
    waiting = receive(store, upload(entered, lines("A"))).token
    expire(store)
    assert enforce_deadlines(store) == 1
    assert find_submission(store, waiting).status == "failed"
    preview = receive(store, upload(entered, lines("B"))).token
    work_once(store, {entered.id: held})
    expire(store)
    assert enforce_deadlines(store) == 1
    assert find_submission(store, preview).status == "lapsed"


def expire(store):
    with store.write() as connection:
        connection.execute(tables.submissions.update().values(deadline_at="2000-01-01T00:00:00Z"))


def test_the_place_in_the_queue_is_known(store, held, entered, lines):
    tokens = [receive(store, upload(entered, lines(letter))).token for letter in "ABC"]
    assert [queue_position(store, find_submission(store, token)) for token in tokens] == [1, 2, 3]
    work_once(store, {entered.id: held})
    assert [queue_position(store, find_submission(store, token)) for token in tokens] == [None, 1, 2]


def test_a_benchmark_without_files_is_our_failure_not_the_submitters(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"))).token
    work_once(store, {})
    assert find_submission(store, token).detail == "the files of its benchmark are not at hand"


def test_only_what_is_scored_can_be_published(store, held, entered, lines):
    token = receive(store, upload(entered, lines("A"))).token
    with pytest.raises(UsageError, match="is received; only one that is scored"):
        publish(store, token, actor="ann")
    with pytest.raises(UsageError, match="no submission"):
        publish(store, "nothing", actor="ann")
    with pytest.raises(UsageError, match="no name"):
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


def test_the_tables_are_those_of_the_migrations(store):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []


def test_an_address_that_leads_nowhere_is_one_message(tmp_path):
    with pytest.raises(UsageError, match="not the address of a store"):
        BoardStore("nonsense://x")
    with pytest.raises(OutsideError, match="cannot be opened"):
        BoardStore(store_url(tmp_path / "missing" / "board.sqlite"))
