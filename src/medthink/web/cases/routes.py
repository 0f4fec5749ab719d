"""The case explorer's routes: nothing withheld is sent before a reader commits; the server alone decides."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from litestar import get, post
from litestar.exceptions import NotFoundException, PermissionDeniedException
from litestar.params import FromPath, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.cases.case import Case
from medthink.core.numbers import these_readers
from medthink.judge.scores import clustered_rate
from medthink.scoring.scores import rate_text
from medthink.stats.intervals import rate_interval
from medthink.web.app.access import Asked, caller_of, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.benchmarks import LoadedSplit
from medthink.web.app.query import read_query
from medthink.web.app.rendering import Interval, place_rate, render, tell_time
from medthink.web.board.case_answers import ModelAnswers
from medthink.web.board.site import board_answers, model_words
from medthink.web.cases.answers import HumanAnswer, Reader, reader_of, remember_reader
from medthink.web.cases.case_page import CONFIDENCES, OthersAnswers, make_reading_page
from medthink.web.cases.list_page import ExploreQuery, make_explore_page
from medthink.web.serve_app import GivenApp, ServeApp


class ReadersPage(msgspec.Struct, frozen=True, kw_only=True):
    """The human baseline: people's answers, next to the models on the same cases.

    Intervals are about the readers who answered (`who`) on cases such as these, not about readers at large.
    """

    name: str
    answers: int
    by_accounts: int
    timed: int
    readers: int
    who: str
    cases: int
    accuracy: Interval | None
    median_seconds: str
    by_confidence: tuple[tuple[str, int, str], ...]
    models: tuple[tuple[str, Interval], ...]


def make_readers_page(
    bench: LoadedSplit, name: str, answers: list[HumanAnswer], models: Sequence[ModelAnswers]
) -> ReadersPage:
    """People's accuracy with its interval, and the models' on the cases that people answered."""
    known = [one for one in answers if one.case in bench.cases]
    cases = sorted({one.case for one in known})
    # Clearing cookies makes new readers, another day or network new sources: neither count may exceed the other.
    readers = min(len({one.reader for one in known}), len({one.source for one in known}))

    def is_right(one: HumanAnswer) -> bool:
        return one.letter == bench.answers[one.case]

    groups = {words: [one for one in known if one.confidence == key] for key, words in CONFIDENCES.items()}
    seconds = [one.seconds for one in known if one.seconds is not None]
    return ReadersPage(
        name=name,
        answers=len(known),
        by_accounts=sum(one.is_by_account for one in known),
        timed=len(seconds),
        readers=readers,
        who=these_readers(readers),
        cases=len(cases),
        accuracy=place_rate(clustered_rate((one.case, is_right(one)) for one in known)) if known else None,
        median_seconds=tell_time(float(np.median(seconds)) if seconds else None),
        by_confidence=tuple(
            (words, len(group), rate_text(clustered_rate((one.case, is_right(one)) for one in group)))
            for words, group in groups.items()
            if group
        ),
        models=tuple(_models_on(bench, cases, models)) if known else (),
    )


def _models_on(bench: LoadedSplit, cases: list[int], models: Sequence[ModelAnswers]) -> Iterator[tuple[str, Interval]]:
    for model in models:
        rights = [model.letters[case] == bench.answers[case] for case in cases if case in model.letters]
        rate = place_rate(rate_interval(rights)) if rights else None
        if rate is not None:
            yield model.name, rate


def _case_page(app: ServeApp, request: Asked, reader: Reader, code: str) -> str:
    """One case, as this reader may see it."""
    case, query = find_case(app, code), read_query(ExploreQuery, request.query_params)
    mine = app.revealed.answers(request)
    if case.id not in mine:
        app.answers.open_case(reader, app.bench.text_fingerprint, case.id)
    # Others' answers are not even loaded before the reveal.
    told = _told(app, case, query) if case.id in mine else OthersAnswers()
    page = make_reading_page(app.bench, case, mine, query, told)
    return render("reading.html", page, app.site, here="cases")


def _told(app: ServeApp, case: Case, query: ExploreQuery) -> OthersAnswers:
    models = board_answers(app)
    giving = [one.number for one in models if one.gives_words and case.id in one.letters]
    wanted = int(query.model) if query.model.isdecimal() else None
    shown = wanted if wanted in giving else next(iter(giving), None)
    words = model_words(app, shown).get(case.id) if shown is not None else None
    return OthersAnswers(others=app.answers.of_all(app.bench.text_fingerprint), models=models, shown=shown, words=words)


def _refuse_awaited(app: ServeApp, request: Asked, code: str) -> None:
    """Refuse a case that the caller still has to read blind in a study."""
    if app.revealed.awaits(request, find_case(app, code).id):
        raise PermissionDeniedException(
            detail="This case is part of a study that you are reading. Read it there first."
        )


def revealed_reference(app: ServeApp, request: Asked, case: Case) -> dict[str, Any] | None:
    """The withheld part of a case, once the caller has committed to an answer."""
    if caller_of(request).account is None or case.id not in app.revealed.answers(request):
        return None
    plain: dict[str, Any] = msgspec.to_builtins(case.reference)
    return plain


def find_case(app: ServeApp, code: str) -> Case:
    """The case with this code."""
    found = app.bench.case_by_code(code)
    if found is None:
        raise NotFoundException(detail="There is no such case.")
    return found


class CommitAnswerForm(msgspec.Struct):
    """The form by which a reader commits."""

    option: str = ""
    confidence: str = ""


@get("/cases", guards=[needs("visitor")], sync_to_thread=True)
def show_cases(request: Asked, app: GivenApp) -> Response[str]:
    """All cases."""
    query = read_query(ExploreQuery, request.query_params)
    mine = app.revealed.answers(request)
    page = make_explore_page(
        app.bench, app.bench.benchmark.path.resolve().name, mine, query, board_answers(app) if mine else ()
    )
    answer = html(render("explore.html", page, app.site, here="cases"))
    return remember_reader(answer, reader_of(request), is_secure=app.settings.is_secure)


@get("/cases/{code:str}", guards=[needs("visitor")], sync_to_thread=True)
def read_case(code: FromPath[str], request: Asked, app: GivenApp) -> Response[str]:
    """One case."""
    _refuse_awaited(app, request, code)
    reader = reader_of(request)
    page = html(_case_page(app, request, reader, code))
    return remember_reader(page, reader, is_secure=app.settings.is_secure)


@post("/cases/{code:str}/answer", guards=[needs("visitor")], sync_to_thread=True)
def commit_answer(
    code: FromPath[str], request: Asked, app: GivenApp, data: URLEncodedBody[CommitAnswerForm]
) -> Redirect:
    """Commit to an answer, and reveal."""
    _refuse_awaited(app, request, code)
    reader = reader_of(request)
    case = find_case(app, code)
    chosen = data.option if data.option in case.question.options else None
    sure = int(data.confidence) if data.confidence.isdecimal() and int(data.confidence) in CONFIDENCES else None
    app.answers.commit(reader, app.bench.text_fingerprint, case.id, chosen, sure if chosen else None)
    query = read_query(ExploreQuery, request.query_params).encode()
    to = Redirect(f"/cases/{code}{query}", status_code=303)
    return remember_reader(to, reader, is_secure=app.settings.is_secure)


@get("/readers", guards=[needs("visitor")], sync_to_thread=True)
def show_readers(app: GivenApp) -> Response[str]:
    """The human baseline."""
    page = make_readers_page(
        app.bench,
        app.bench.benchmark.path.resolve().name,
        app.answers.of_all(app.bench.text_fingerprint),
        board_answers(app),
    )
    return html(render("readers.html", page, app.site, here="readers"))


explorer_feature = Feature(routes=[show_cases, read_case, commit_answer, show_readers])
