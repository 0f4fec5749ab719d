"""The leaderboard's routes: public pages, and the board as data."""

import gzip
from typing import Annotated, Any

import msgspec
from litestar import MediaType, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, QueryParameter
from litestar.response import Response

from medthink.board.exports import DOWNLOADS, export_board, plain_row, plain_slices
from medthink.core.clock import now_utc
from medthink.web.app.access import Asked, RowNumber, caller_of, needs
from medthink.web.app.application import SENT_AS_IS, Feature, html
from medthink.web.app.query import read_query
from medthink.web.app.rest import ERRORS
from medthink.web.board.columns import BoardQuery
from medthink.web.board.site import compare_page, find_row, leaderboard_page, model_page, public_file
from medthink.web.cases.routes import find_case, revealed_reference
from medthink.web.serve_app import GivenApp, ServeApp

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
    """The route of the complete board as data, in one of its formats."""
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


_PER_PAGE = 100
_OPEN: dict[str, Any] = {"guards": [needs("visitor", scope="read")], "responses": ERRORS, "sync_to_thread": True}
Day = Annotated[str, QueryParameter(pattern=r"^(\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?)?$", max_length=20)]


class ApiCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case as a reader may see it: `reference` is null until the reader has committed to an answer."""

    code: str
    history: str
    options: dict[str, str]
    images: tuple[str, ...]
    reference: dict[str, Any] | None = None


class ApiCases(msgspec.Struct, frozen=True, kw_only=True):
    """A page of cases, in the order of their codes."""

    total: int
    page: int
    cases: tuple[ApiCase, ...]


@get("/leaderboard", **_OPEN)
def give_leaderboard(app: GivenApp, as_of: Day = "") -> Response[Any]:
    """The complete board with ranks, intervals, slices and provenance, current or as of a day."""
    return Response(export_board(app.live.made(as_of or None), "json"), media_type=MediaType.JSON)


@get("/leaderboard.csv", **_OPEN, media_type="text/csv")
def give_csv(app: GivenApp, as_of: Day = "") -> Response[bytes]:
    """The same as a table."""
    headers = {"Content-Disposition": 'attachment; filename="leaderboard.csv"'}
    return Response(export_board(app.live.made(as_of or None), "csv"), media_type="text/csv", headers=headers)


@get("/models/{number:int}", **_OPEN)
def give_model(number: RowNumber, app: GivenApp) -> dict[str, Any]:
    """One published model."""
    row = find_row(app, number)
    return plain_row(row) | {"slices": plain_slices(row)}


@get("/cases", **_OPEN)
def give_cases(request: Asked, app: GivenApp, page: Annotated[int, QueryParameter(ge=1, le=10**6)] = 1) -> ApiCases:
    """The cases, a hundred per page."""
    codes = sorted(map(app.bench.code, app.bench.cases))
    chosen = codes[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    return ApiCases(total=len(codes), page=page, cases=tuple(_case(app, request, code) for code in chosen))


@get("/cases/{code:str}", **_OPEN)
def give_case(code: FromPath[str], request: Asked, app: GivenApp) -> ApiCase:
    """One case, with its reference once the caller has committed to an answer."""
    return _case(app, request, code)


def _case(app: ServeApp, request: Asked, code: str) -> ApiCase:
    case = find_case(app, code)
    reference = revealed_reference(app, request, case)
    return ApiCase(
        code=code,
        history=case.question.history,
        options=dict(case.question.options),
        images=tuple(f"/images/{app.bench.id_of(image)}/1024" for image in case.question.images),
        reference=reference,
    )


board_api = Feature(api=[give_leaderboard, give_csv, give_model])
case_api = Feature(api=[give_cases, give_case])
