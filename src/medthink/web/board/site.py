"""The leaderboard's pages over a board's store, for routes and for static files alike."""

from collections.abc import Mapping

import msgspec
from litestar.exceptions import NotFoundException

from medthink.board.exports import public_predictions, read_model_texts
from medthink.board.history import history
from medthink.board.ranking import BoardRow
from medthink.board.results import load_published
from medthink.core.errors import UsageError
from medthink.scoring.compare import Comparison
from medthink.web.app.access import Asked
from medthink.web.app.query import read_query
from medthink.web.app.rendering import render
from medthink.web.board.case_answers import ModelAnswers, collect_answers
from medthink.web.board.columns import BoardQuery
from medthink.web.board.compare import CompareQuery, compare_rows, make_compare_page
from medthink.web.board.leaderboard import LeaderboardPage, make_leaderboard_page
from medthink.web.board.model import make_model_page
from medthink.web.cases.answers import RevealedCases
from medthink.web.serve_app import ServeApp
from medthink.workflow.prediction import Prediction

_PAIRS_KEPT = 256
# A file of 720 cases with all its steps takes some megabytes.
_WORDS_KEPT = 8


def leaderboard_page(app: ServeApp, given: Mapping[str, str], *, root: str = "/") -> str:
    """The ranking."""
    query = read_query(BoardQuery, given)
    try:
        page = make_leaderboard_page(app.live.made(query.day), load_published(), query)
    except UsageError as error:
        page = LeaderboardPage(query=query, problem=error.problem)
    return render("leaderboard.html", page, app.site, root=root)


def model_page(app: ServeApp, number: int, request: Asked | None = None, *, root: str = "/") -> str:
    """One published model."""
    page = make_model_page(
        find_row(app, number), app.live.made(), history(app.live.store, number), _revealed(app, request)
    )
    return render("model.html", page, app.site, root=root)


def compare_page(app: ServeApp, given: Mapping[str, str], request: Asked | None = None, *, root: str = "/") -> str:
    """Two models side by side, or the choice of two."""
    query = read_query(CompareQuery, given)
    pair: tuple[BoardRow, BoardRow] | None = None
    compared: Comparison | str = ""
    if query.a.isdecimal() and query.b.isdecimal():
        pair = first, second = find_row(app, int(query.a)), find_row(app, int(query.b))
        compared = _compare(app, first, second)
    page = make_compare_page(app.live.made(), pair, compared, query, _revealed(app, request))
    return render("compare.html", page, app.site, root=root)


def comparisons_page(app: ServeApp, links: tuple[tuple[str, str], ...], *, root: str) -> str:
    """The comparisons included in a static site."""
    page = make_compare_page(app.live.made(), None, "", CompareQuery(), None)
    return render("compare.html", msgspec.structs.replace(page, links=links), app.site, root=root)


def public_file(app: ServeApp, number: int) -> bytes:
    """The predictions of a model, if its team allows it."""
    row = find_row(app, number)
    if not row.submission.allows_download or row.is_withdrawn:
        raise NotFoundException(detail="The team has not made the predictions public.")
    return public_predictions(app.live.store, row.submission)


def board_answers(app: ServeApp) -> tuple[ModelAnswers, ...]:
    """Each published model's answers by case; empty if there is no board yet."""
    return app.live.once("answers", None, lambda: _collect_answers(app), most=1)


def model_words(app: ServeApp, number: int) -> Mapping[int, Prediction]:
    """A published model's texts about each case, if its team has made them public."""
    row = find_row(app, number)
    if not row.submission.allows_download or row.is_withdrawn or app.reveals is None:
        return {}
    store, cases = app.live.store, app.reveals.bench.cases
    return app.live.once("words", number, lambda: read_model_texts(store, row.submission, cases), most=_WORDS_KEPT)


def find_row(app: ServeApp, number: int) -> BoardRow:
    """One row of the board, or a not-found page."""
    found = next((row for row in app.live.made().every_row() if row.submission.id == number), None)
    if found is None:
        raise NotFoundException(detail="There is no such model on the board.")
    return found


def _compare(app: ServeApp, a: BoardRow, b: BoardRow) -> Comparison | str:
    cases, key = app.reveals.bench.cases if app.reveals else {}, (a.submission.id, b.submission.id)
    return app.live.once("pairs", key, lambda: compare_rows(a, b, cases), most=_PAIRS_KEPT)


def _collect_answers(app: ServeApp) -> tuple[ModelAnswers, ...]:
    try:
        return collect_answers([row for row in app.live.made().every_row() if not row.is_withdrawn])
    except UsageError:
        return ()


def _revealed(app: ServeApp, request: Asked | None) -> RevealedCases | None:
    return app.reveals.of(request) if app.reveals and request else None
