"""Many readers saving at once, on SQLite and on PostgreSQL: no update is lost."""

import threading
from pathlib import Path

import pytest

from medthink.board.store import BoardStore
from medthink.readers.studies import desk, setup
from medthink.readers.studies.plan import StudyPlan
from medthink.readers.studies.saving import MarkChange, Saved, save_mark
from reading_room import make_judged_run

pytest_plugins = ("stores",)
pytestmark = pytest.mark.slow

READERS, SAVES = 8, 25


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judged_run(tmp_path_factory.mktemp("room"))


def test_no_update_is_lost_when_all_readers_save_at_once(store: BoardStore, run: Path):
    names = tuple(f"reader{number}" for number in range(READERS))
    plan = StudyPlan(
        name="Many", data=str(run.parent / "bench"), runs=(str(run),), kinds=("steps",), readers=names,
        per_case=READERS, again_share=0.0, planted_share=0.0,
    )  # fmt: skip
    with store.write() as connection:
        study = setup.create_study(connection, setup.plan_study(plan), made_by="cora")
        readers = {one.name: one for one in setup.list_readers(connection, study.id)}
    saved: dict[str, dict[str, int]] = {name: {} for name in names}
    problems: list[BaseException] = []

    def read(name: str) -> None:
        try:
            with store.write() as connection:
                held = desk.hold(connection, desk.list_sittings(connection, readers[name].id)[0], name)
                opened = desk.commit_diagnosis(connection, held, "A", 2, seconds=1.0)
            items = [item.code for item in opened.sitting.revealed.texts[0].items]
            for number in range(SAVES):
                item = items[number % len(items)]
                version = saved[name].get(item, 0)
                change = MarkChange(
                    item=item, version=version, cells={"note": str(number)}, seconds=1.0, key=f"{name}-{number}"
                )  # fmt: skip
                with store.write() as connection:
                    answer = save_mark(connection, opened, change, name)
                assert isinstance(answer, Saved)
                saved[name][item] = answer.version
        except (AssertionError, OSError, ValueError) as error:
            problems.append(error)

    threads = [threading.Thread(target=read, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with store.read() as connection:
        for name in names:
            marks = desk.read_marks(connection, desk.list_sittings(connection, readers[name].id)[0].id)
            assert {item: mark.version for item, mark in marks.items()} == saved[name]
            assert sum(mark.seconds for mark in marks.values()) == SAVES
