"""`medthink serve`: the leaderboard of a store and the case explorer of a benchmark, in one application."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from litestar.types import ASGIApp

from medthink.board.benchmarks import ensure_benchmark
from medthink.store.engine import Store
from medthink.web.accounts.external_sign_in import vouching_feature
from medthink.web.accounts.own_account import account_feature
from medthink.web.accounts.people import people_feature
from medthink.web.accounts.sign_in import sign_in_feature
from medthink.web.app.access import Identify
from medthink.web.app.application import Feature, make_application
from medthink.web.app.benchmarks import BenchmarkCache
from medthink.web.app.images import Renditions, image_feature
from medthink.web.app.rendering import Link, Site
from medthink.web.app.server import ServeSettings
from medthink.web.board.cache import BoardCache
from medthink.web.board.routes import board_api, board_feature, case_api
from medthink.web.cases.answers import Reveals
from medthink.web.cases.routes import explorer_feature
from medthink.web.reading.routes import room_feature
from medthink.web.reading.studies import study_feature
from medthink.web.reading.training import training_feature
from medthink.web.review.routes import review_feature
from medthink.web.serve_app import ServeApp
from medthink.web.submissions.rest import submission_api
from medthink.web.submissions.routes import submission_feature

_BOARD = Link("", "Leaderboard")
_CASES = (Link("cases", "Cases"), Link("readers", "Readers"))
_READING = (Link("readings", "Your readings", "reader"), Link("studies", "Studies", "coordinator"))
_SUBMIT = (Link("submit", "Submit"), Link("queue", "Submissions", "maintainer"))
_REVIEW = Link("review", "Review", "coordinator")
_PEOPLE = Link("people", "People", "maintainer")


def open_app(
    store: Store,
    data: Path | None,
    split: str,
    settings: ServeSettings | None = None,
    *,
    runs: Sequence[Path] = (),
    review: Path | None = None,
) -> ServeApp:
    """Open a store, and optionally a benchmark, runs to read and a sheet to review."""
    library = BenchmarkCache()
    opened = library.open(data, split) if data else None
    entry = ensure_benchmark(store, data, split, opened.text_fingerprint) if data and opened else None
    links: tuple[Link, ...] = (*_CASES, *_READING, *_SUBMIT) if data else ()
    links += (_REVIEW,) if review else ()
    return ServeApp(
        store=store,
        site=Site(links=(_BOARD, *links, _PEOPLE), has_accounts=True),
        live=BoardCache(store, entry.name if entry else None),
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
        is_secure=app.settings.is_secure,
        identify=lambda inner: Identify(inner, app.store),
    )


def _features(app: ServeApp, renditions: Renditions | None) -> Iterator[Feature]:
    yield Feature(shared={"app": app})
    yield from (board_feature, board_api, sign_in_feature, vouching_feature, account_feature, people_feature)
    if app.review:
        yield review_feature
    if app.reveals:
        largest = app.settings.largest_upload
        yield from (submission_feature(largest), submission_api(largest))
        yield from (explorer_feature, case_api, image_feature(app.library, renditions))
        yield from (room_feature, training_feature, study_feature)
