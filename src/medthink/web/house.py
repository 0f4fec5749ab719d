"""`medthink serve`: the leaderboard of a store and the case explorer of a benchmark, in one application."""

from collections.abc import Sequence
from pathlib import Path

from litestar.types import ASGIApp

from medthink.board.benchmarks import find_or_enter
from medthink.board.store import BoardStore
from medthink.web.api import board_api, case_api
from medthink.web.application import make_application
from medthink.web.board_routes import board_routes
from medthink.web.board_site import BoardSite
from medthink.web.entrance import Entrance, entrance_routes
from medthink.web.explorer import Explorer, explorer_routes
from medthink.web.human_answers import HumanAnswers
from medthink.web.identify import Identify
from medthink.web.images import image_routes
from medthink.web.library import Library
from medthink.web.live_board import LiveBoard
from medthink.web.own_account import account_routes
from medthink.web.page_cache import PageCache
from medthink.web.people import people_routes
from medthink.web.rendering import Link, Site
from medthink.web.renditions import Renditions
from medthink.web.revealed import Reveals
from medthink.web.review_desk import ReviewDesk, review_routes
from medthink.web.room import ReadingRoom, room_routes
from medthink.web.settings import ServeSettings
from medthink.web.studies import StudyOffice, study_routes
from medthink.web.submission_api import make_upload_api, submission_api
from medthink.web.submission_desk import SubmissionDesk
from medthink.web.submission_routes import make_upload_route, submission_routes
from medthink.web.training import TrainingDesk, training_routes
from medthink.web.vouching import vouching_routes

_BOARD = Link("", "Leaderboard")
_CASES = (Link("cases", "Cases"), Link("readers", "Readers"))
_READING = (Link("readings", "Your readings", "reader"), Link("studies", "Studies", "coordinator"))
_SUBMIT = (Link("submit", "Submit"), Link("queue", "Submissions", "maintainer"))
_REVIEW = Link("review", "Review", "coordinator")
_PEOPLE = Link("people", "People", "maintainer")


class House:
    """Everything that is served: a store, and a benchmark, runs to read and a sheet to review where they are given."""

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
        self.explorer = Explorer(opened, answers, self._site, self.board.letters, is_awaited) if opened else None
        self.office = StudyOffice(store, opened, self._site, runs) if opened else None

    def application(self, *, hosts: Sequence[str], renditions: Renditions | None = None) -> ASGIApp:
        """The application that serves it."""
        shared: dict[str, object] = {"board": self.board, "pages": PageCache(), "entrance": self._entrance}
        routes = [*board_routes, *entrance_routes, *vouching_routes, *account_routes, *people_routes]
        api = [*board_api]
        if self._desk:
            routes += [*submission_routes, make_upload_route(self._settings.largest_upload)]
            api += [*submission_api, make_upload_api(self._settings.largest_upload)]
            shared["desk"] = self._desk
        if self._review:
            routes += review_routes
            shared["review"] = self._review
        if self.explorer:
            api += case_api
            routes += [*explorer_routes, *image_routes, *room_routes, *training_routes, *study_routes]
            shared |= {
                "room": self.room,
                "training": self.training,
                "office": self.office,
                "explorer": self.explorer,
                "library": self.library,
                "renditions": renditions or Renditions(),
            }
        return make_application(
            routes,
            self._site,
            hosts=[*hosts, *self._settings.hosts],
            shared=shared,
            identify=lambda app: Identify(app, self._store),
            api=api,
        )
