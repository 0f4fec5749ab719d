"""What one module adds to an application: its routes, and the objects that they ask for."""

from collections.abc import Mapping, Sequence

import msgspec
from litestar.handlers import HTTPRouteHandler


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """Pages, routes of the API, and by name the objects that handlers are given; names may be shared by features."""

    routes: Sequence[HTTPRouteHandler] = ()
    api: Sequence[HTTPRouteHandler] = ()
    shared: Mapping[str, object] = {}
