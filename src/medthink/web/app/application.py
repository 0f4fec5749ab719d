"""The application shared by `view` and `serve`: assets, error pages, and the security guard."""

import asyncio
import logging
import secrets
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Litestar, MediaType, Router, get
from litestar.config.compression import CompressionConfig
from litestar.di import Provide
from litestar.exceptions import HTTPException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response import Response
from litestar.types import ASGIApp

from medthink.core.errors import MedThinkError
from medthink.web.app.access import Asked, needs, refuse_undeclared
from medthink.web.app.rendering import Link, Site, load_asset, render
from medthink.web.app.rest import PREFIX, Problem, make_api, make_openapi, tell_http_problem
from medthink.web.app.security import Guard


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """Pages, API routes, and the named objects for their handlers; features may share names."""

    routes: Sequence[HTTPRouteHandler] = ()
    api: Sequence[HTTPRouteHandler] = ()
    shared: Mapping[str, object] = {}


SENT_AS_IS = {"is_sent_as_is": True}
"""The option of a route whose answers are compressed already, or too short for it."""

_LARGEST_FORM = 64 * 1024
_THREADS = 24
_LOG = logging.getLogger(__name__)
_FOR_EVER = "public, max-age=31536000, immutable"


class ErrorPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of an error page: the problem, and links to continue."""

    title: str
    words: str
    back: Link


def make_application(
    features: Sequence[Feature],
    site: Site,
    *,
    hosts: Iterable[str],
    is_secure: bool = False,
    identify: Callable[[ASGIApp], ASGIApp] | None = None,
) -> ASGIApp:
    """The application with the routes of all features.

    With `is_secure`, browsers are told to use https only. With `identify`, which identifies callers, every route must
    declare the role it needs.
    """
    routes = [route for feature in features for route in feature.routes]
    api = [route for feature in features for route in feature.api]
    shared = {name: value for feature in features for name, value in feature.shared.items()}
    if identify is not None:
        refuse_undeclared([*routes, *api])
    # In a router, because an application given a GET and a POST of one path registers the first twice.
    pages = Router("/", route_handlers=[*routes, serve_asset], include_in_schema=False)
    app: ASGIApp = Litestar(
        route_handlers=[pages, *([make_api(api)] if api else [])],
        dependencies={name: Provide(_giver(value), sync_to_thread=False) for name, value in shared.items()},
        exception_handlers={
            HTTPException: partial(_answer_error, site),
            MedThinkError: partial(_answer_problem, site),
            Exception: partial(_answer_fault, site),
        },
        compression_config=CompressionConfig(backend="gzip", gzip_compress_level=1, exclude_opt_key="is_sent_as_is"),
        openapi_config=make_openapi() if api else None,
        request_max_body_size=_LARGEST_FORM,
        on_startup=[_widen_threads],
        logging_config=None,
    )
    return Guard(app if identify is None else identify(app), hosts, is_secure=is_secure)


async def _widen_threads() -> None:
    """Let more requests wait for the database or the disk at once than there are cores."""
    threads = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="answer")
    asyncio.get_running_loop().set_default_executor(threads)


def html(text: str, *, status: int = 200) -> Response[str]:
    """A page as a response."""
    return Response(text, media_type=MediaType.HTML, status_code=status)


@get("/static/{name:str}", guards=[needs("visitor")], sync_to_thread=False)
def serve_asset(name: FromPath[str]) -> Response[bytes]:
    """A style sheet, a script or a drawing of our own."""
    found = load_asset(name)
    if found is None:
        raise NotFoundException
    return Response(found.data, media_type=found.media_type, headers={"Cache-Control": _FOR_EVER})


def _giver(value: object) -> Callable[[], Any]:
    return lambda: value


_TITLES = {
    401: "Sign in first",
    403: "Not allowed",
    404: "Page not found",
    405: "Not possible here",
    413: "File too large",
}
# The texts of other errors come from the framework and are not meant for people.
_TOLD = (401, 403, 404)


def _answer_error(site: Site, request: Asked, error: HTTPException) -> Response[Any]:
    if request.url.path.startswith(f"{PREFIX}/"):
        return tell_http_problem(request, error)
    if error.status_code == 401 and request.method == "GET" and site.has_accounts:
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return Response("", status_code=303, headers={"Location": f"/sign-in?{urlencode({'next': back})}"})
    title = _TITLES.get(error.status_code, "Request failed")
    words = error.detail if error.status_code in _TOLD and error.detail != "Not Found" else ""
    return _error_page(site, title, words, error.status_code)


def _answer_fault(site: Site, request: Asked, error: Exception) -> Response[Any]:
    """Report an internal error: its location, without any values, in the log; a reference number to people."""
    reference = secrets.token_hex(4)
    places = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error("%s %s\n%s%s (message not logged)", reference, request.method, places, type(error).__name__)
    if request.url.path.startswith(f"{PREFIX}/"):
        return Response(Problem(problem="internal error", remedy=f"tell the maintainers: {reference}"), status_code=500)
    words = (
        f"This is an error on our side. Nothing was changed. Please give the maintainers this reference: {reference}."
    )
    return _error_page(site, "Internal error", words, 500)


def _answer_problem(site: Site, _: Asked, error: MedThinkError) -> Response[str]:
    return _error_page(site, "This cannot be shown", str(error), 422)


def _error_page(site: Site, title: str, words: str, status: int) -> Response[str]:
    return html(render("error.html", ErrorPage(title=title, words=words, back=site.links[0]), site), status=status)
