"""The leaderboard's pages over a board's store, for routes and for static files alike."""

from collections.abc import Mapping
from functools import lru_cache

import msgspec
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import SkipValidation

from medthink.board.downloads import public_predictions
from medthink.board.published import load_published
from medthink.board.ranking import BoardRow, Leaderboard
from medthink.board.records import history
from medthink.core.errors import UsageError
from medthink.scoring.compare import Comparison
from medthink.web.access import Asked
from medthink.web.live_board import BoardVersion, LiveBoard
from medthink.web.pages.board_query import BoardQuery
from medthink.web.pages.board_versus import CompareQuery, compare_rows, make_compare_page
from medthink.web.pages.explore import ModelLetters
from medthink.web.pages.leaderboard import LeaderboardPage, make_leaderboard_page
from medthink.web.pages.model import make_model_page
from medthink.web.pages.query import read_query
from medthink.web.rendering import Site, render
from medthink.web.revealed import RevealedCases, Reveals

_PAIRS_KEPT = 256


class BoardSite:
    """The board of one benchmark as pages; with `reveals`, pages also tell of the cases that their reader revealed."""

    def __init__(self, live: LiveBoard, site: Site, reveals: Reveals | None = None) -> None:
        self.live = live
        self._site = site
        self._reveals = reveals
        self._compared = lru_cache(maxsize=_PAIRS_KEPT)(self._compare)

    def leaderboard(self, given: Mapping[str, str], *, root: str = "/") -> str:
        """The ranking."""
        query = read_query(BoardQuery, given)
        try:
            page = make_leaderboard_page(self.made(query.day), load_published(), query)
        except UsageError as error:
            page = LeaderboardPage(query=query, problem=error.problem)
        return render("leaderboard.html", page, self._site, root=root)

    def model(self, number: int, request: Asked | None = None, *, root: str = "/") -> str:
        """One model; what was never published is not there."""
        page = make_model_page(self.row(number), self.made(), history(self.live.store, number), self._revealed(request))
        return render("model.html", page, self._site, root=root)

    def compare(self, given: Mapping[str, str], request: Asked | None = None, *, root: str = "/") -> str:
        """Two models side by side, or the choice of two."""
        query = read_query(CompareQuery, given)
        pair: tuple[BoardRow, BoardRow] | None = None
        compared: Comparison | str = ""
        if query.a.isdecimal() and query.b.isdecimal():
            a, b = int(query.a), int(query.b)
            pair = (self.row(a), self.row(b))
            compared = self._compared(self.live.version(), a, b)
        page = make_compare_page(self.made(), pair, compared, query, self._revealed(request))
        return render("compare.html", page, self._site, root=root)

    def comparisons(self, links: tuple[tuple[str, str], ...], *, root: str) -> str:
        """The comparisons that a site of static files has."""
        page = make_compare_page(self.made(), None, "", CompareQuery(), None)
        return render("compare.html", msgspec.structs.replace(page, links=links), self._site, root=root)

    def predictions(self, number: int) -> bytes:
        """The predictions of a model, where its team allows that."""
        row = self.row(number)
        if not row.submission.allows_download or row.is_withdrawn:
            raise NotFoundException(detail="Its team has not allowed others to download the predictions.")
        return public_predictions(self.live.store, row.submission)

    def letters(self) -> ModelLetters:
        """What each published model answered, case by case; none where there is no board yet."""
        try:
            rows = [row for row in self.made().every_row() if not row.is_withdrawn]
        except UsageError:
            return {}
        # One model may stand there under several conditions.
        return {f"{row.submission.model} · {row.scores.origin.condition_label}": _letters(row) for row in rows}

    def row(self, number: int) -> BoardRow:
        """One row of the board, or a page that says there is none."""
        found = next((row for row in self.made().every_row() if row.submission.id == number), None)
        if found is None:
            raise NotFoundException(detail="There is no such model on the board.")
        return found

    def made(self, as_of: str | None = None) -> Leaderboard:
        """The board as it stands, or as it stood; UsageError where there is no benchmark yet."""
        return self.live.made(as_of)

    def _compare(self, version: BoardVersion, a: int, b: int) -> Comparison | str:  # noqa: ARG002
        cases = self._reveals.bench.cases if self._reveals else {}
        return compare_rows(self.row(a), self.row(b), cases)

    def _revealed(self, request: Asked | None) -> RevealedCases | None:
        return self._reveals.of(request) if self._reveals and request else None


def _letters(row: BoardRow) -> dict[int, str | None]:
    return dict(zip(row.result.cases, row.result.answers, strict=True))


GivenBoard = NamedDependency[SkipValidation[BoardSite]]
