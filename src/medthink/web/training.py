"""Training before a study: a few sentences with known answers, with feedback and a pass mark; it does not count."""

import threading
from typing import Any

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.cases.case import Case
from medthink.core.digest import seed_from
from medthink.core.errors import DataError
from medthink.judge.exam.sheets import ExamSheet
from medthink.readers.studies import desk, setup
from medthink.readers.studies.setup import Study, StudyReader
from medthink.readers.training import Training, draw_training, mark_training
from medthink.readers.training_lists import training_sheets
from medthink.web.access import Asked, account_of, needs
from medthink.web.application import html
from medthink.web.feature import Feature
from medthink.web.pages.training import label_choices, make_training_page, read_labels
from medthink.web.rendering import render
from medthink.web.room import ReadingRoom

ITEMS = 5
_ATTEMPT = "attempt"
_KINDS = ("steps", "findings", "discussion")


class TrainingDesk:
    """The items of every study's training, made once for each benchmark."""

    def __init__(self, room: ReadingRoom) -> None:
        self.room = room
        self._made: dict[str, tuple[tuple[ExamSheet, ...], dict[int, Case]]] = {}
        self._lock = threading.Lock()

    def training(self, study: Study, reader: StudyReader) -> tuple[Training, dict[int, Case]]:
        """The items of this reader's current attempt, and their cases; none from the study."""
        sheets, cases = self._sheets(study)
        with self.room.store.read() as connection:
            read = {one.sitting.case for one in desk.list_sittings(connection, reader.id)}
        usable = [one for one in sheets if cases[one.case].split != study.plan.split or one.case not in read]
        what = next((kind for kind in _KINDS if kind in study.plan.kinds), "steps")
        seed = seed_from(study.token, reader.name, reader.training.get(_ATTEMPT, "1"))
        return draw_training(usable, items=ITEMS, seed=seed, what=what), cases

    def show(self, study: Study, reader: StudyReader, seen: str) -> str:
        """The reader's current page."""
        training, cases = self.training(study, reader)
        split = next(iter(cases.values())).split
        page = make_training_page(
            study.token,
            study.plan.name,
            training,
            reader.training,
            cases=cases,
            bench=self.room.library.open(study.plan.folder, split),
            seen=seen,
        )
        return render("training.html", page, self.room.site, here="readings")

    def answer(self, study: Study, reader: StudyReader, code: str, label: str) -> None:
        """Store an answer; the first one to an item counts."""
        training, _ = self.training(study, reader)
        truth = training.truths.get(code)
        if truth is None or label not in label_choices(truth.what) or code in reader.training:
            return
        answers = reader.training | {code: label}
        is_passed = mark_training(training.truths, read_labels(answers)).is_passed
        with self.room.store.write() as connection:
            setup.note_training(connection, reader.id, answers, is_passed=is_passed)

    def begin_again(self, reader: StudyReader) -> None:
        """Another attempt, with other items."""
        attempt = int(reader.training.get(_ATTEMPT, "1")) + 1
        with self.room.store.write() as connection:
            setup.note_training(connection, reader.id, {_ATTEMPT: str(attempt)}, is_passed=False)

    def _sheets(self, study: Study) -> tuple[tuple[ExamSheet, ...], dict[int, Case]]:
        with self._lock:
            if study.plan.data not in self._made:
                self._made[study.plan.data] = training_sheets(study.plan.folder, None, 0)
            return self._made[study.plan.data]


GivenTraining = NamedDependency[SkipValidation[TrainingDesk]]


class AnswerForm(msgspec.Struct):
    """A reader's answer to an item."""

    code: str = ""
    label: str = ""


@get("/room/{study:str}/training", guards=[needs("reader")], sync_to_thread=True)
def show_training(study: FromPath[str], request: Asked, training: GivenTraining) -> Response[Any]:
    """The current item, feedback, or the result; without training material the reader may continue."""
    found, reader = training.room.find(study, account_of(request).name)
    try:
        return html(training.show(found, reader, request.query_params.get("seen", "")))
    except DataError:
        with training.room.store.write() as connection:
            setup.note_training(connection, reader.id, {}, is_passed=True)
        return Redirect(f"/room/{study}", status_code=303)


@post("/room/{study:str}/training", guards=[needs("reader")], sync_to_thread=True)
def answer_training(
    study: FromPath[str],
    request: Asked,
    training: GivenTraining,
    data: URLEncodedBody[AnswerForm],
) -> Redirect:
    """Answer an item, then see whether it was right."""
    found, reader = training.room.find(study, account_of(request).name)
    training.answer(found, reader, data.code, data.label)
    seen = data.code if data.code.isalnum() else ""
    return Redirect(f"/room/{study}/training?seen={seen}", status_code=303)


@post("/room/{study:str}/training/again", guards=[needs("reader")], sync_to_thread=True)
def repeat_training(study: FromPath[str], request: Asked, training: GivenTraining) -> Redirect:
    """Try again with other items."""
    _, reader = training.room.find(study, account_of(request).name)
    if reader.trained_at is None:
        training.begin_again(reader)
    return Redirect(f"/room/{study}/training", status_code=303)


def training_feature(training: TrainingDesk) -> Feature:
    """The readers' training."""
    return Feature(routes=[show_training, answer_training, repeat_training], shared={"training": training})
