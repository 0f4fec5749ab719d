"""The leaderboard's routes: public pages, and the board as data."""

import gzip
from typing import Any

from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Response

from medthink.board.exports import DOWNLOADS, export_board
from medthink.core.clock import now_utc
from medthink.web.access import Asked, RowNumber, caller_of, needs
from medthink.web.application import SENT_AS_IS, html
from medthink.web.board_site import compare_page, leaderboard_page, model_page, public_file
from medthink.web.feature import Feature
from medthink.web.pages.board_query import BoardQuery
from medthink.web.pages.query import read_query
from medthink.web.serve_app import GivenApp

_VISITOR = [needs("visitor")]
_PAGES_KEPT = 256


@get("/", guards=_VISITOR, opt=SENT_AS_IS, sync_to_thread=True)
def show_leaderboard(request: Asked, app: GivenApp) -> Response[Any]:
    """The ranking: one page for all visitors, and for each signed-in person one with their name and roles on it."""
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return html(leaderboard_page(app, request.query_params))
    account = caller_of(request).account
    query = read_query(BoardQuery, request.query_params)
    # The day is on the page.
    key = (now_utc()[:10], query, account and (account.id, account.shown_name, account.roles))

    def make() -> bytes:
        return gzip.compress(leaderboard_page(app, request.query_params).encode(), 6, mtime=0)

    page = app.live.once("pages", key, make, most=_PAGES_KEPT)
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding, Cookie"}
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


def _make_download(form: str) -> HTTPRouteHandler:
    """The route of the whole board as data, in one of its forms."""
    name, media_type = DOWNLOADS[form]

    @get(f"/{name}", guards=_VISITOR, sync_to_thread=True)
    def download_board(request: Asked, app: GivenApp) -> Response[bytes]:
        query = read_query(BoardQuery, request.query_params)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(export_board(app.live.made(query.day), form), media_type=media_type, headers=headers)

    return download_board


@get("/models/{number:int}", guards=_VISITOR, sync_to_thread=True)
def show_model(number: RowNumber, request: Asked, app: GivenApp) -> Response[str]:
    """One model."""
    return html(model_page(app, number, request))


@get("/models/{number:int}/predictions.jsonl", guards=_VISITOR, sync_to_thread=True)
def download_predictions(number: RowNumber, app: GivenApp) -> Response[bytes]:
    """A model's answers, if its team allows it."""
    headers = {"Content-Disposition": f'attachment; filename="predictions-{number}.jsonl"'}
    return Response(public_file(app, number), media_type="application/jsonl", headers=headers)


@get("/compare", guards=_VISITOR, sync_to_thread=True)
def compare_models(request: Asked, app: GivenApp) -> Response[str]:
    """Any two models."""
    return html(compare_page(app, request.query_params, request))


board_feature = Feature(
    routes=[show_leaderboard, *map(_make_download, DOWNLOADS), show_model, download_predictions, compare_models]
)
