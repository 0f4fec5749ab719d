"""Many readers saving at once, on SQLite and on PostgreSQL: no update is lost, and each is told about their own."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from litestar.exceptions import NotFoundException
from sqlalchemy import Connection

from medthink.core.errors import MedThinkError
from medthink.readers.studies import reading, setup
from medthink.readers.studies.marks import MarkChange, SaveConflict, SavedMark, save_mark
from medthink.readers.studies.plan import StudyPlan
from medthink.readers.studies.reading import OpenSitting, ReaderSitting
from medthink.readers.studies.setup import StudyReader
from medthink.store.engine import Store
from medthink.web.reading.routes import at_work
from reading_room import make_judged_run

pytest_plugins = ("stores",)

READERS, SAVES = 8, 25


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judged_run(tmp_path_factory.mktemp("room"))


class Sent(NamedTuple):
    """A change to a mark, by the reader of this seat."""

    seat: ReaderSitting
    change: MarkChange


class ManyReaders:
    """A study that everybody reads, and of every reader the first sitting, committed to."""

    def __init__(self, store: Store, run: Path) -> None:
        self.store = store
        names = tuple(f"reader{number}" for number in range(READERS))
        plan = StudyPlan(
            name="Many", data=str(run.parent / "bench"), runs=(str(run),), kinds=("steps",), readers=names,
            per_case=READERS, again_share=0.0, planted_share=0.0,
        )  # fmt: skip
        with store.write() as connection:
            self.study = setup.create_study(connection, setup.plan_study(plan), made_by="cora")
            self.opened = {
                one.name: self._commit(connection, one) for one in setup.list_readers(connection, self.study.id)
            }

    def _commit(self, connection: Connection, reader: StudyReader) -> OpenSitting:
        held = reading.hold_on_device(connection, reading.list_sittings(connection, reader.id)[0], reader.name)
        return reading.commit_diagnosis(connection, held, "A", 2, seconds=1.0)

    def items(self, name: str) -> list[str]:
        return [item.code for item in self.opened[name].sitting.revealed.texts[0].items]

    def order(self, name: str, number: int = 0, **fields: object) -> Sent:
        change = MarkChange(
            item=self.items(name)[0], version=0, cells={"note": f"{name} {number}"}, seconds=1.0, key=f"k{number}"
        )  # fmt: skip
        seat = ReaderSitting(self.study.token, self.opened[name].sitting.code, name)
        return Sent(seat, msgspec.structs.replace(change, **fields))

    def versions(self, name: str) -> dict[str, int]:
        with self.store.read() as connection:
            marks = reading.read_marks(connection, self.opened[name].id)
        return {item: mark.version for item, mark in marks.items()}

    def save(self, sent: Sent) -> object:
        """What the reader is answered."""
        try:
            with at_work(self.store, sent.seat) as (connection, opened):
                return save_mark(connection, opened, sent.change, sent.seat.name)
        except (MedThinkError, NotFoundException) as error:
            return error

    def save_at_once(self, *several: Sent) -> list[object]:
        """What each is answered when all are sent at the same moment."""
        begin = threading.Barrier(len(several))

        def save(sent: Sent) -> object:
            begin.wait()
            return self.save(sent)

        with ThreadPoolExecutor(len(several)) as threads:
            return list(threads.map(save, several))


@pytest.fixture
def many(store: Store, run: Path) -> ManyReaders:
    return ManyReaders(store, run)


def test_no_update_is_lost_when_all_readers_save_at_once(many: ManyReaders):
    saved: dict[str, dict[str, int]] = {name: {} for name in many.opened}
    problems: list[BaseException] = []

    def read(name: str) -> None:
        items = many.items(name)
        try:
            for number in range(SAVES):
                item = items[number % len(items)]
                order = many.order(name, number, item=item, version=saved[name].get(item, 0))
                with many.store.write() as connection:
                    answer = save_mark(connection, many.opened[name], order.change, name)
                assert isinstance(answer, SavedMark)
                saved[name][item] = answer.version
        except (AssertionError, OSError, ValueError) as error:
            problems.append(error)

    threads = [threading.Thread(target=read, args=(name,)) for name in many.opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    for name, opened in many.opened.items():
        assert many.versions(name) == saved[name]
        with many.store.read() as connection:
            assert sum(mark.seconds for mark in reading.read_marks(connection, opened.id).values()) == SAVES


def test_of_two_saves_of_a_version_one_is_kept_and_the_other_told(many: ManyReaders):
    answers = many.save_at_once(*(many.order(name, number) for name in many.opened for number in (1, 2)))
    for name, pair in zip(many.opened, zip(answers[::2], answers[1::2], strict=True), strict=True):
        assert sorted(type(one).__name__ for one in pair) == ["SaveConflict", "SavedMark"]
        assert many.versions(name) == {many.items(name)[0]: 1}


def test_what_cannot_be_saved_keeps_no_other_from_being_saved(many: ManyReaders):
    """A locked reading, a strange cell, a stale version, a case of nobody's: each is told to its own reader."""
    with many.store.write() as connection:
        reading.update_sitting(connection, many.opened["reader0"], {"submitted_at": "2026-01-01T00:00:00Z"})
    strange = many.order("reader3")
    sent = (
        many.order("reader0"),
        many.order("reader1", cells={"colour": "red"}),
        many.order("reader2", version=7),
        strange._replace(seat=strange.seat._replace(code="none")),
        many.order("reader4"),
        many.order("reader4", 1),
        many.order("reader4"),
        many.order("reader5"),
    )
    answers = [many.save(one) for one in sent]
    names = [type(one).__name__ for one in answers]
    assert names == [
        "UsageError",
        "UsageError",
        "SaveConflict",
        "NotFoundException",
        "SavedMark",
        "SaveConflict",
        "SavedMark",
        "SavedMark",
    ]
    assert answers[4] == answers[6] == answers[7] == SavedMark(1)
    assert [sum(many.versions(name).values()) for name in many.opened] == [0, 0, 0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize("odd", [{"cells": {"note": "a\0b"}}, {"key": "a\0b"}, {"item": "a\0b"}, {"version": 2**70}])
def test_a_value_that_no_database_holds_is_told_to_its_own_reader(many: ManyReaders, odd: dict[str, object]):
    """PostgreSQL stores no NUL characters; SQLite does."""
    odd_one, *others = many.save_at_once(many.order("reader0", **odd), many.order("reader1"), many.order("reader2"))
    assert isinstance(odd_one, MedThinkError | SavedMark | SaveConflict), odd_one
    assert others == [SavedMark(1)] * 2


def test_a_save_waits_for_nobody_but_its_own_sitting(new_address: str, run: Path):
    """While one sitting is being written elsewhere (PostgreSQL), the other readers' saves are answered."""
    many = ManyReaders(Store(new_address), run)
    others = [many.order(name) for name in many.opened if name != "reader0"]
    with ThreadPoolExecutor(1) as threads:
        with many.store.write() as connection:
            reading.lock_sitting(connection, many.opened["reader0"])
            held = threads.submit(many.save, many.order("reader0"))
            assert many.save_at_once(*others) == [SavedMark(1)] * (READERS - 1)
            assert not held.done()
        assert held.result() == SavedMark(1)
    many.store.close()
