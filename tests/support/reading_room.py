"""A reading room with a study in it: a judged run, a coordinator, two readers, and one who reads nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judged_run import make_discussions, make_run
from medthink.judge.session import JudgeSpec, judge_run
from medthink.readers.studies import reading, setup
from medthink.readers.studies.plan import StudyPlan
from medthink.web.reading.routes import find_seat
from people import Board

TEXT = (
    "There is a mass in the left lung. The margin is smooth. No effusion is seen. The hilum is normal. "
    "Age and history fit. So the diagnosis follows."
)
CASES = 4


def make_judged_run(root: Path, text: str = TEXT) -> Path:
    """A run whose rationales are cut into six steps, with lists of decisive findings."""
    run = make_run(root, cases=CASES, rationales=[text] * CASES)
    judge_run(JudgeSpec(run=run, judges=("baseline/rules",), what=("steps", "omissions"), splitter="sentences"))
    return run


def make_discussed_runs(root: Path) -> tuple[Path, Path]:
    """Two runs with discussions of two sections, cut into sentences and compared with each other."""
    runs = []
    for name, lesson in (("one", "Night pain calls for CT."), ("two", "Correlate clinically.")):
        run = make_discussions(
            root, cases=CASES, sections={"background": "It is a tumour. It is rare.", "teaching_points": lesson}
        )
        runs.append(run.rename(root / name))
        manifest = json.loads((runs[-1] / "run.json").read_text())
        (runs[-1] / "run.json").write_text(json.dumps(manifest | {"model": f"server/{name}"}))
    for run in runs:
        judge_run(JudgeSpec(run=run, judges=("baseline/rules",), what=("discussion",)))
    judge_run(JudgeSpec(run=runs[0], judges=("baseline/rules",), what=("preference",), against=(runs[1],)))
    return runs[0], runs[1]


class Room:
    """A served board with one study."""

    def __init__(self, root: Path, run: Path, **plan: Any) -> None:
        self.run = run
        self.board = Board(root, run.parent / "bench", runs=[run])
        self.cora = self.board.add("cora", "coordinator")
        self.anna, self.ben, self.eve = (self.board.add(name, "reader") for name in ("anna", "ben", "eve"))
        fields: dict[str, Any] = {"kinds": ("steps", "omissions"), "needs_training": False, "again_share": 0.0}
        fields["runs"] = (str(run),)
        fields["readers"] = ("anna", "ben")
        made = StudyPlan(
            name="Double reading",
            data=str(run.parent / "bench"),
            planted_share=0.0,
            **(fields | plan),
        )
        with self.board.store.write() as connection:
            self.study = setup.create_study(connection, setup.plan_study(made), made_by="cora")

    def codes(self, name: str) -> list[str]:
        """The codes of a reader's sittings, in the order of reading."""
        with self.board.store.read() as connection:
            reader = setup.find_reader(connection, self.study.id, name)
            assert reader is not None
            return [one.sitting.code for one in reading.list_sittings(connection, reader.id)]

    def case(self, name: str, place: int = 0) -> int:
        """The number of the case of a reader's sitting."""
        return find_seat(self.board.served, self.study.token, self.codes(name)[place], name).opened.sitting.case

    def address(self, name: str, place: int = 0) -> str:
        """Where a reader's sitting is."""
        return f"/room/{self.study.token}/{self.codes(name)[place]}"


@contextmanager
def open_room(root: Path, run: Path, **plan: Any) -> Iterator[Room]:
    """A room, closed afterwards."""
    room = Room(root, run, **plan)
    yield room
    room.board.store.close()
