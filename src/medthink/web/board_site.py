"""The leaderboard's pages over a board's store, for routes and for static files alike."""

from collections.abc import Mapping

from litestar import get
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import SkipValidation
from litestar.response import Response

from medthink.board.benchmarks import find_benchmark
from medthink.board.published import load_published
from medthink.board.ranking import BoardRow, Leaderboard, make_leaderboard
from medthink.board.store import BoardStore
from medthink.core.errors import UsageError
from medthink.web.access import Asked, RowNumber, needs
from medthink.web.application import html
from medthink.web.pages.explore import ModelLetters
from medthink.web.pages.leaderboard import BoardQuery, LeaderboardPage, make_leaderboard_page, make_model_page
from medthink.web.pages.query import read_query
from medthink.web.rendering import Site, render


class BoardSite:
    """The board of one benchmark as pages."""

    def __init__(self, store: BoardStore, site: Site, benchmark: str | None = None) -> None:
        self._store = store
        self._site = site
        self._benchmark = benchmark

    def leaderboard(self, given: Mapping[str, str], *, root: str = "/") -> str:
        """The ranking."""
        query = read_query(BoardQuery, given)
        try:
            page = make_leaderboard_page(self.made(query.as_of or None), load_published(), query)
        except UsageError as error:
            page = LeaderboardPage(query=query, problem=error.problem)
        return render("leaderboard.html", page, self._site, root=root)

    def model(self, number: int, *, root: str = "/") -> str:
        """One model; what was never published is not there."""
        return render("model.html", make_model_page(self.row(number)), self._site, root=root)

    def row(self, number: int) -> BoardRow:
        """One row of the board, or a page that says there is none."""
        found = next((row for row in self._rows() if row.submission.id == number), None)
        if found is None:
            raise NotFoundException(detail="There is no such model on the board.")
        return found

    def letters(self) -> ModelLetters:
        """What each published model answered, case by case; none where there is no board yet."""
        try:
            rows = [row for row in self._rows() if not row.is_withdrawn]
        except UsageError:
            return {}
        # One model may stand there under several conditions.
        return {f"{row.submission.model} · {row.scores.origin.condition_label}": _letters(row) for row in rows}

    def _rows(self) -> list[BoardRow]:
        made = self.made(None)
        return list(made.every_row())

    def made(self, as_of: str | None) -> Leaderboard:
        """The board as it stands, or as it stood; UsageError where there is no benchmark yet."""
        return make_leaderboard(self._store, find_benchmark(self._store, self._benchmark), as_of)


def _letters(row: BoardRow) -> dict[int, str | None]:
    return dict(zip(row.result.cases, row.result.answers, strict=True))


GivenBoard = NamedDependency[SkipValidation[BoardSite]]


@get("/", guards=[needs("visitor")], sync_to_thread=True)
def show_leaderboard(request: Asked, board: GivenBoard) -> Response[str]:
    """The ranking."""
    return html(board.leaderboard(request.query_params))


@get("/models/{number:int}", guards=[needs("visitor")], sync_to_thread=True)
def show_model(number: RowNumber, board: GivenBoard) -> Response[str]:
    """One model."""
    return html(board.model(number))


board_routes = [show_leaderboard, show_model]
