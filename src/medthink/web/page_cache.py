"""Pages that are the same for each caller, rendered and compressed once until something changes."""

import gzip
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from litestar.response import Response

from medthink.web.access import Asked, caller_of
from medthink.web.application import html

_MOST_BYTES = 32 * 1024 * 1024


class PageCache:
    """The most recently requested pages, in limited memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def answer(self, request: Asked, key: Hashable, make: Callable[[], str]) -> Response[str] | Response[bytes]:
        """The page of this key; a signed-in person gets a separate page with their name and roles on it."""
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return html(make())
        account = caller_of(request).account
        key = (key, account and (account.id, account.shown_name, account.roles))
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding, Cookie"}
        return Response(self._page(key, make), media_type="text/html; charset=utf-8", headers=headers)

    def _page(self, key: Hashable, make: Callable[[], str]) -> bytes:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        # Rendered outside the lock, so that a slow page does not block cached ones.
        page = gzip.compress(make().encode(), 6, mtime=0)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = page
                self._size += len(page)
            while self._size > _MOST_BYTES and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1])
        return page
