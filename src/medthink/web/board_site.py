"""The leaderboard's pages over a board's store, for routes and for static files alike."""

from collections.abc import Mapping

import msgspec
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import SkipValidation

from medthink.board.downloads import public_predictions, read_words
from medthink.board.published import load_published
from medthink.board.ranking import BoardRow, Leaderboard
from medthink.board.records import history
from medthink.core.errors import UsageError
from medthink.runs.prediction import Prediction
from medthink.scoring.compare import Comparison
from medthink.web.access import Asked
from medthink.web.board_cache import LiveBoard
from medthink.web.pages.board_query import BoardQuery
from medthink.web.pages.board_versus import CompareQuery, compare_rows, make_compare_page
from medthink.web.pages.leaderboard import LeaderboardPage, make_leaderboard_page
from medthink.web.pages.model import make_model_page
from medthink.web.pages.model_answers import ModelAnswers, collect_answers
from medthink.web.pages.query import read_query
from medthink.web.rendering import Site, render
from medthink.web.revealed import RevealedCases, Reveals

_PAIRS_KEPT = 256
# A file of 720 cases with all its steps takes some megabytes.
_WORDS_KEPT = 8


class BoardSite:
    """The board of one benchmark as pages; with `reveals`, pages also show the cases that their reader has revealed."""

    def __init__(self, live: LiveBoard, site: Site, reveals: Reveals | None = None) -> None:
        self.live = live
        self._site = site
        self._reveals = reveals

    def leaderboard(self, given: Mapping[str, str], *, root: str = "/") -> str:
        """The ranking."""
        query = read_query(BoardQuery, given)
        try:
            page = make_leaderboard_page(self.made(query.day), load_published(), query)
        except UsageError as error:
            page = LeaderboardPage(query=query, problem=error.problem)
        return render("leaderboard.html", page, self._site, root=root)

    def model(self, number: int, request: Asked | None = None, *, root: str = "/") -> str:
        """One published model."""
        page = make_model_page(self.row(number), self.made(), history(self.live.store, number), self._revealed(request))
        return render("model.html", page, self._site, root=root)

    def compare(self, given: Mapping[str, str], request: Asked | None = None, *, root: str = "/") -> str:
        """Two models side by side, or the choice of two."""
        query = read_query(CompareQuery, given)
        pair: tuple[BoardRow, BoardRow] | None = None
        compared: Comparison | str = ""
        if query.a.isdecimal() and query.b.isdecimal():
            pair = first, second = self.row(int(query.a)), self.row(int(query.b))
            compared = self._compare(first, second)
        page = make_compare_page(self.made(), pair, compared, query, self._revealed(request))
        return render("compare.html", page, self._site, root=root)

    def comparisons(self, links: tuple[tuple[str, str], ...], *, root: str) -> str:
        """The comparisons included in a static site."""
        page = make_compare_page(self.made(), None, "", CompareQuery(), None)
        return render("compare.html", msgspec.structs.replace(page, links=links), self._site, root=root)

    def predictions(self, number: int) -> bytes:
        """The predictions of a model, if its team allows it."""
        row = self.row(number)
        if not row.submission.allows_download or row.is_withdrawn:
            raise NotFoundException(detail="The team has not made the predictions public.")
        return public_predictions(self.live.store, row.submission)

    def answers(self) -> tuple[ModelAnswers, ...]:
        """Each published model's answers by case; empty if there is no board yet."""
        return self.live.once("answers", None, self._collect_answers, most=1)

    def words(self, number: int) -> Mapping[int, Prediction]:
        """What a published model wrote about each case, where its team lets everybody read that."""
        row = self.row(number)
        if not row.submission.allows_download or row.is_withdrawn or self._reveals is None:
            return {}
        store, cases = self.live.store, self._reveals.bench.cases
        return self.live.once("words", number, lambda: read_words(store, row.submission, cases), most=_WORDS_KEPT)

    def row(self, number: int) -> BoardRow:
        """One row of the board, or a page that says there is none."""
        found = next((row for row in self.made().every_row() if row.submission.id == number), None)
        if found is None:
            raise NotFoundException(detail="There is no such model on the board.")
        return found

    def made(self, as_of: str | None = None) -> Leaderboard:
        """The current or a past board; UsageError if there is no benchmark yet."""
        return self.live.made(as_of)

    def _compare(self, a: BoardRow, b: BoardRow) -> Comparison | str:
        cases, key = self._reveals.bench.cases if self._reveals else {}, (a.submission.id, b.submission.id)
        return self.live.once("pairs", key, lambda: compare_rows(a, b, cases), most=_PAIRS_KEPT)

    def _collect_answers(self) -> tuple[ModelAnswers, ...]:
        try:
            return collect_answers([row for row in self.made().every_row() if not row.is_withdrawn])
        except UsageError:
            return ()

    def _revealed(self, request: Asked | None) -> RevealedCases | None:
        return self._reveals.of(request) if self._reveals and request else None


GivenBoard = NamedDependency[SkipValidation[BoardSite]]
