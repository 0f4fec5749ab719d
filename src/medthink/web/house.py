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
from medthink.web.entrance import entrance_feature
from medthink.web.explorer import explorer_feature
from medthink.web.feature import Feature
from medthink.web.identify import Identify
from medthink.web.images import image_feature
from medthink.web.library import Library
from medthink.web.own_account import account_feature
from medthink.web.people import people_feature
from medthink.web.rendering import Link, Site
from medthink.web.renditions import Renditions
from medthink.web.revealed import Reveals
from medthink.web.review_desk import review_feature
from medthink.web.room import room_feature
from medthink.web.serve_app import ServeApp
from medthink.web.settings import ServeSettings
from medthink.web.studies import study_feature
from medthink.web.submission_api import submission_api
from medthink.web.submission_routes import submission_feature
from medthink.web.training import training_feature
from medthink.web.vouching import vouching_feature

_BOARD = Link("", "Leaderboard")
_CASES = (Link("cases", "Cases"), Link("readers", "Readers"))
_READING = (Link("readings", "Your readings", "reader"), Link("studies", "Studies", "coordinator"))
_SUBMIT = (Link("submit", "Submit"), Link("queue", "Submissions", "maintainer"))
_REVIEW = Link("review", "Review", "coordinator")
_PEOPLE = Link("people", "People", "maintainer")


def open_app(
    store: BoardStore,
    data: Path | None,
    split: str,
    settings: ServeSettings | None = None,
    *,
    runs: Sequence[Path] = (),
    review: Path | None = None,
) -> ServeApp:
    """Open what is served: a store, and optionally a benchmark, runs to read and a sheet to review."""
    library = Library()
    opened = library.open(data, split) if data else None
    entry = find_or_enter(store, data, split, opened.text_fingerprint) if data and opened else None
    links: tuple[Link, ...] = (*_CASES, *_READING, *_SUBMIT) if data else ()
    links += (_REVIEW,) if review else ()
    return ServeApp(
        store=store,
        site=Site(links=(_BOARD, *links, _PEOPLE), has_accounts=True),
        live=LiveBoard(store, entry.name if entry else None),
        settings=settings or ServeSettings(),
        library=library,
        entry=entry,
        reveals=Reveals(opened, store) if opened else None,
        runs=tuple(runs),
        review=review,
    )


def serve_application(app: ServeApp, *, hosts: Sequence[str], renditions: Renditions | None = None) -> ASGIApp:
    """The application that serves it."""
    return make_application(
        list(_features(app, renditions)),
        app.site,
        hosts=[*hosts, *app.settings.hosts],
        identify=lambda inner: Identify(inner, app.store),
    )


def _features(app: ServeApp, renditions: Renditions | None) -> Iterator[Feature]:
    yield Feature(shared={"app": app})
    yield from (board_feature, board_api, entrance_feature, vouching_feature, account_feature, people_feature)
    if app.review:
        yield review_feature
    if app.reveals:
        largest = app.settings.largest_upload
        yield from (submission_feature(largest), submission_api(largest))
        yield from (explorer_feature, case_api, image_feature(app.library, renditions))
        yield from (room_feature, training_feature, study_feature)
