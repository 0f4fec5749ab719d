"""`medthink serve`: the leaderboard of a store and the case explorer of a benchmark, in one application."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from litestar.types import ASGIApp

from medthink.board.benchmarks import find_or_enter
from medthink.board.store import BoardStore
from medthink.web.api import board_api, case_api
from medthink.web.application import make_application
from medthink.web.board_cache import LiveBoard
from medthink.web.board_routes import board_feature
from medthink.web.board_site import BoardSite
from medthink.web.entrance import Entrance, entrance_feature
from medthink.web.explorer import Explorer, explorer_feature
from medthink.web.feature import Feature
from medthink.web.human_answers import HumanAnswers
from medthink.web.identify import Identify
from medthink.web.images import image_feature
from medthink.web.library import Library
from medthink.web.own_account import account_feature
from medthink.web.people import people_feature
from medthink.web.rendering import Link, Site
from medthink.web.renditions import Renditions
from medthink.web.revealed import Reveals
from medthink.web.review_desk import ReviewDesk, review_feature
from medthink.web.room import ReadingRoom, room_feature
from medthink.web.settings import ServeSettings
from medthink.web.studies import StudyOffice, study_feature
from medthink.web.submission_api import submission_api
from medthink.web.submission_desk import SubmissionDesk
from medthink.web.submission_routes import submission_feature
from medthink.web.training import TrainingDesk, training_feature
from medthink.web.vouching import vouching_feature

_BOARD = Link("", "Leaderboard")
_CASES = (Link("cases", "Cases"), Link("readers", "Readers"))
_READING = (Link("readings", "Your readings", "reader"), Link("studies", "Studies", "coordinator"))
_SUBMIT = (Link("submit", "Submit"), Link("queue", "Submissions", "maintainer"))
_REVIEW = Link("review", "Review", "coordinator")
_PEOPLE = Link("people", "People", "maintainer")


class House:
    """Everything that is served: a store, and optionally a benchmark, runs to read and a sheet to review."""

    def __init__(
        self,
        store: BoardStore,
        data: Path | None,
        split: str,
        settings: ServeSettings | None = None,
        *,
        runs: Sequence[Path] = (),
        review: Path | None = None,
    ) -> None:
        self._store = store
        self._settings = settings or ServeSettings()
        links: tuple[Link, ...] = (*_CASES, *_READING, *_SUBMIT) if data else ()
        links += (_REVIEW,) if review else ()
        self._site = Site(links=(_BOARD, *links, _PEOPLE), has_accounts=True)
        self._review = ReviewDesk(review, self._site) if review else None
        self._entrance = Entrance(store, self._site, self._settings)
        self.library = Library()
        opened, answers = self.library.open(data, split) if data else None, HumanAnswers(store)
        benchmark = find_or_enter(store, data, split, opened.text_fingerprint) if data and opened else None
        self.room = ReadingRoom(store, self.library, self._site)
        self.training = TrainingDesk(self.room)
        is_awaited = self.room.awaiting(opened) if opened else None
        reveals = Reveals(opened, answers, is_awaited) if opened else None
        self.board = BoardSite(LiveBoard(store, benchmark.name if benchmark else None), self._site, reveals)
        self._desk = SubmissionDesk(store, self._site, self._settings, benchmark) if benchmark else None
        self.explorer = Explorer(reveals, answers, self._site, self.board) if reveals else None
        self.office = StudyOffice(store, opened, self._site, runs) if opened else None

    def application(self, *, hosts: Sequence[str], renditions: Renditions | None = None) -> ASGIApp:
        """The application that serves it."""
        return make_application(
            list(self._features(renditions)),
            self._site,
            hosts=[*hosts, *self._settings.hosts],
            identify=lambda app: Identify(app, self._store),
        )

    def _features(self, renditions: Renditions | None) -> Iterator[Feature]:
        yield from (board_feature(self.board), board_api)
        yield from (entrance_feature(self._entrance), vouching_feature, account_feature, people_feature)
        if self._desk:
            largest = self._settings.largest_upload
            yield from (submission_feature(self._desk, largest), submission_api(largest))
        if self._review:
            yield review_feature(self._review)
        if self.explorer and self.office:
            yield from (explorer_feature(self.explorer), case_api, image_feature(self.library, renditions))
            yield from (room_feature(self.room), training_feature(self.training), study_feature(self.office))
