"""Training before a study: a few sentences with known answers, with feedback and a pass mark; it does not count."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from litestar import get, post
from litestar.params import FromPath, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.cases.case import Case
from medthink.core.digest import seed_from
from medthink.judge.exam.results import ExamText
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import UNSURE, Label
from medthink.readers.studies import reading, setup
from medthink.readers.studies.setup import Study, StudyReader
from medthink.readers.training import (
    Feedback,
    NoTrainingMaterial,
    Training,
    TrainingItem,
    TrainingResult,
    draw_training,
    fits_training,
    give_feedback,
    mark_training,
    training_sheets,
)
from medthink.web.app.access import Asked, account_of, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.benchmarks import LoadedSplit
from medthink.web.app.images import PageImage, show_image
from medthink.web.app.rendering import render
from medthink.web.reading.routes import find_reading
from medthink.web.serve_app import GivenApp, ServeApp


class TrainingCase(msgspec.Struct, frozen=True, kw_only=True):
    """The current item with its case: the sentence with the text before and after it, and the expert's material."""

    code: str
    history: str
    options: tuple[tuple[str, str], ...]
    images: tuple[PageImage, ...]
    diagnosis: str
    findings: str
    before: str
    sentence: str
    behind: str
    choices: tuple[str, ...]


class TrainingPage(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's position in training: an item to judge, the feedback on the last one, or the result."""

    token: str
    name: str
    number: int
    total: int
    item: TrainingCase | None
    feedback: Feedback | None
    result: TrainingResult | None


def make_training_page(
    token: str,
    name: str,
    training: Training,
    answers: Mapping[str, str],
    *,
    cases: Mapping[int, Case],
    bench: LoadedSplit,
    seen: str = "",
) -> TrainingPage:
    """The page; `seen` is the code of the item whose feedback is requested."""
    left = [item for item in training.items if item.code not in answers]
    said = read_labels(answers)
    feedback = (
        give_feedback(seen, training.truths[seen], said[seen]) if seen in training.truths and seen in said else None
    )
    item = left[0] if left and feedback is None else None
    is_over = not left and feedback is None
    return TrainingPage(
        token=token,
        name=name,
        number=len(training.items) - len(left) + (0 if feedback else 1),
        total=len(training.items),
        item=_show(item, cases[item.case], bench) if item else None,
        feedback=feedback,
        result=mark_training(training.truths, said) if is_over else None,
    )


def read_labels(answers: Mapping[str, str]) -> dict[str, Label | None]:
    """The answers as labels; "unsure" counts as none."""
    return {code: None if label == UNSURE else label for code, label in answers.items()}


def label_choices(what: str) -> tuple[str, ...]:
    """The choices for the leading label of a kind."""
    kind = KINDS[what]
    return next(column.choices for column in kind.columns if kind.true_label in column.choices)


def _show(item: TrainingItem, case: Case, bench: LoadedSplit) -> TrainingCase:
    (unit,) = item.units.units
    whole = item.source.parts[unit.part]
    images = (show_image(bench, image, number) for number, image in enumerate(case.question.images, start=1))
    return TrainingCase(
        code=item.code,
        history=case.question.history,
        options=tuple(case.question.options.items()),
        images=tuple(image for image in images if not image.problem),
        diagnosis=case.reference.answer_text,
        findings="\n\n".join([case.reference.findings, *(one.caption for one in case.reference.images)]),
        before=whole[: unit.start],
        sentence=unit.text,
        behind=whole[unit.end :],
        choices=label_choices(item.source.what),
    )


ITEMS = 5
_BENCHMARKS_KEPT = 8
_ATTEMPT = "attempt"


@lru_cache(maxsize=_BENCHMARKS_KEPT)
def _find_sheets(place: Path) -> tuple[tuple[ExamText, ...], dict[int, Case]]:
    """The training items of a benchmark, and their cases; made once."""
    return training_sheets(place, None, 0)


def current_training(app: ServeApp, study: Study, reader: StudyReader) -> tuple[Training, dict[int, Case]]:
    """The items of this reader's current attempt, and their cases; none from the study."""
    sheets, cases = _find_sheets(study.plan.folder)
    with app.store.read() as connection:
        read = {one.sitting.case for one in reading.list_sittings(connection, reader.id)}
    usable = [one for one in sheets if cases[one.case].split != study.plan.split or one.case not in read]
    what = next(filter(fits_training, study.plan.kinds), "steps")
    seed = seed_from(study.token, reader.name, reader.training.get(_ATTEMPT, "1"))
    return draw_training(usable, items=ITEMS, seed=seed, what=what), cases


def _training_page(app: ServeApp, study: Study, reader: StudyReader, seen: str) -> str:
    """The reader's current page."""
    training, cases = current_training(app, study, reader)
    split = next(iter(cases.values())).split
    page = make_training_page(
        study.token,
        study.plan.name,
        training,
        reader.training,
        cases=cases,
        bench=app.library.open(study.plan.folder, split),
        seen=seen,
    )
    return render("training.html", page, app.site, here="readings")


def _keep_answer(app: ServeApp, study: Study, reader: StudyReader, code: str, label: str) -> None:
    """Store an answer; the first one to an item counts."""
    training, _ = current_training(app, study, reader)
    truth = training.truths.get(code)
    if truth is None or label not in label_choices(truth.what) or code in reader.training:
        return
    answers = reader.training | {code: label}
    is_passed = mark_training(training.truths, read_labels(answers)).is_passed
    with app.store.write() as connection:
        setup.store_training(connection, reader.id, answers, is_passed=is_passed)


class AnswerForm(msgspec.Struct):
    """A reader's answer to an item."""

    code: str = ""
    label: str = ""


@get("/room/{study:str}/training", guards=[needs("reader")], sync_to_thread=True)
def show_training(study: FromPath[str], request: Asked, app: GivenApp) -> Response[Any]:
    """The current item, feedback, or the result; without training material the reader may continue."""
    found, reader = find_reading(app, study, account_of(request).name)
    try:
        return html(_training_page(app, found, reader, request.query_params.get("seen", "")))
    except NoTrainingMaterial:
        with app.store.write() as connection:
            setup.store_training(connection, reader.id, {}, is_passed=True)
        return Redirect(f"/room/{study}", status_code=303)


@post("/room/{study:str}/training", guards=[needs("reader")], sync_to_thread=True)
def answer_training(study: FromPath[str], request: Asked, app: GivenApp, data: URLEncodedBody[AnswerForm]) -> Redirect:
    """Answer an item, then show whether it was right."""
    found, reader = find_reading(app, study, account_of(request).name)
    _keep_answer(app, found, reader, data.code, data.label)
    seen = data.code if data.code.isalnum() else ""
    return Redirect(f"/room/{study}/training?seen={seen}", status_code=303)


@post("/room/{study:str}/training/again", guards=[needs("reader")], sync_to_thread=True)
def repeat_training(study: FromPath[str], request: Asked, app: GivenApp) -> Redirect:
    """Try again with other items."""
    _, reader = find_reading(app, study, account_of(request).name)
    if reader.trained_at is None:
        attempt = int(reader.training.get(_ATTEMPT, "1")) + 1
        with app.store.write() as connection:
            setup.store_training(connection, reader.id, {_ATTEMPT: str(attempt)}, is_passed=False)
    return Redirect(f"/room/{study}/training", status_code=303)


training_feature = Feature(routes=[show_training, answer_training, repeat_training])
