"""Several servers for one model: least in flight first; a sick one rests, and comes back by a single probe."""

import time
from collections.abc import Callable
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

SICK_AFTER = 2
FIRST_REST_S = 1.0
MOST_REST_S = 60.0


class Endpoint:
    """One base URL and how it has been doing."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.proxy = _find_proxy(url)
        self.in_flight = 0
        self.failures = 0
        self.served = 0
        self.rests_until = 0.0

    def is_ready(self, now: float) -> bool:
        """Healthy, or rested and not being probed."""
        return now >= self.rests_until and (self.failures < SICK_AFTER or self.in_flight == 0)


class Endpoints:
    """The servers of one model."""

    def __init__(self, urls: tuple[str, ...], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.all = [Endpoint(url) for url in urls]
        self._clock = clock

    def choose(self) -> Endpoint:
        """The ready endpoint with the least in flight; when all are sick, the one that recovers first."""
        now = self._clock()
        ready = [endpoint for endpoint in self.all if endpoint.is_ready(now)]
        if ready:
            return min(ready, key=lambda endpoint: (endpoint.in_flight, endpoint.served))
        return min(self.all, key=lambda endpoint: (endpoint.rests_until, endpoint.in_flight))

    def note_success(self, endpoint: Endpoint) -> None:
        """It answers: it is healthy."""
        endpoint.failures = 0

    def note_failure(self, endpoint: Endpoint) -> None:
        """It failed: after a few failures in a row it rests, each time twice as long."""
        endpoint.failures += 1
        if endpoint.failures >= SICK_AFTER:
            rest_s = min(MOST_REST_S, FIRST_REST_S * 2.0 ** (endpoint.failures - SICK_AFTER))
            endpoint.rests_until = self._clock() + rest_s

    def note_wait(self, endpoint: Endpoint, wait_s: float) -> None:
        """It asked for a pause: the others are asked meanwhile."""
        endpoint.rests_until = max(endpoint.rests_until, self._clock() + wait_s)


def _find_proxy(url: str) -> str | None:
    """The proxy the environment names for this URL, if any."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
