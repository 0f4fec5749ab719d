"""The REST API: the app, a team's submissions and the cases, for programs; described by `/api/v1/openapi.json`.

It exposes the same as the pages and nothing more: only the question of a case that its reader has not committed to.
"""

from typing import Annotated, Any

import msgspec
from litestar import MediaType, get
from litestar.params import FromPath, QueryParameter
from litestar.response import Response

from medthink.board.exports import export_board, plain_row, plain_slices
from medthink.web.access import Asked, RowNumber, needs
from medthink.web.api_frame import ERRORS
from medthink.web.board_site import find_row
from medthink.web.explorer import find_case, revealed_reference
from medthink.web.feature import Feature
from medthink.web.serve_app import GivenApp, ServeApp

_PER_PAGE = 100
_OPEN: dict[str, Any] = {"guards": [needs("visitor", scope="read")], "responses": ERRORS, "sync_to_thread": True}
Day = Annotated[str, QueryParameter(pattern=r"^(\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?)?$", max_length=20)]


class ApiCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case as its reader may see it: `reference` is null until the reader has committed to an answer."""

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
    """The whole board with ranks, intervals, slices and provenance, current or as of a day."""
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
