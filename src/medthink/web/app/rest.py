"""The API for programs: errors as JSON, and the OpenAPI description."""

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import MediaType, Router
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.response import Response

from medthink import __version__
from medthink.core.errors import Declined, MedThinkError
from medthink.web.app.access import Asked, needs

PREFIX = "/api/v1"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error: the problem, and the remedy."""

    problem: str
    remedy: str = ""


ERRORS = {
    status: ResponseSpec(Problem, generate_examples=False, description=words)
    for status, words in {
        400: "something in the request is wrong",
        401: "a token or a session is needed, or this one has expired",
        403: "this caller may not do that",
        404: "it does not exist, or does not belong to the caller",
        409: "a quota is used up",
        413: "the file is too large",
        422: "the item is in another state, or a text value is not accepted",
    }.items()
}
"""The error responses of every route."""


def make_api(handlers: Sequence[HTTPRouteHandler]) -> Router:
    """The router of the API; errors are returned as JSON."""
    return Router(
        PREFIX,
        route_handlers=list(handlers),
        exception_handlers={HTTPException: tell_http_problem, MedThinkError: _tell_problem},
    )


def make_openapi() -> OpenAPIConfig:
    """The description of the API, without pages that would load scripts from elsewhere."""
    scheme = SecurityScheme(type="http", scheme="bearer", description="An API token from your account's page.")
    return OpenAPIConfig(
        title="MedThink board",
        version=__version__,
        render_plugins=[JsonRenderPlugin(path="/")],
        openapi_router=Router(
            f"{PREFIX}/openapi.json",
            route_handlers=[],
            guards=[needs("visitor", scope="read")],
            after_request=_without_pages,
            include_in_schema=False,
        ),
        components=Components(security_schemes={"token": scheme}),
        security=[{}, {"token": []}],
    )


def _without_pages(response: Response[Any]) -> Response[Any]:
    """Replace the framework's not-found page below the description, which has its own style."""
    if response.media_type == MediaType.HTML:
        return Response(Problem(problem="Not Found"), status_code=404, media_type=MediaType.JSON)
    return response


def tell_http_problem(_: Asked, error: HTTPException) -> Response[Problem]:
    """An error of the request as JSON."""
    extra = getattr(error, "extra", None)
    found = extra if isinstance(extra, list) else []
    fields = ", ".join(f"{one.get('key', '')}: {one.get('message', '')}" for one in found if isinstance(one, dict))
    words = fields or error.detail or "the request failed"
    return Response(Problem(problem=words), status_code=error.status_code, headers=error.headers or {})


def _tell_problem(_: Asked, error: MedThinkError) -> Response[Problem]:
    status = 409 if isinstance(error, Declined) else 422
    return Response(Problem(problem=error.problem, remedy=error.remedy), status_code=status)
