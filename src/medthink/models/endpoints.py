"""Several servers for one model: the least busy one goes first; a failing one is paused, then tried again."""

import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

SICK_AFTER = 2
FIRST_REST_S = 1.0
MOST_REST_S = 60.0


class Endpoint:
    """One base URL and its health."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.proxy = find_proxy(url)
        self.in_flight = 0
        self.failures = 0
        self.served = 0
        self.rests_until = 0.0

    @property
    def is_sick(self) -> bool:
        """Whether it failed several times in a row."""
        return self.failures >= SICK_AFTER

    def is_ready(self, now: float) -> bool:
        """Whether it is healthy, or has rested and is not already being retried."""
        return now >= self.rests_until and (not self.is_sick or self.in_flight == 0)


class Endpoints:
    """The servers of one model."""

    def __init__(self, urls: tuple[str, ...], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.all = [Endpoint(url) for url in urls]
        self._clock = clock
        self._down_since: float | None = None

    @property
    def are_all_sick(self) -> bool:
        """Whether no server is left to ask."""
        return all(endpoint.is_sick for endpoint in self.all)

    def down_for_s(self) -> float:
        """How long all of them have been failing."""
        return 0.0 if self._down_since is None else self._clock() - self._down_since

    def choose(self, avoid: Collection[Endpoint] = ()) -> Endpoint:
        """The ready endpoint with the least in flight; when none is ready, the one that recovers first.

        Those to avoid already failed for the same call: they are chosen only if there is no other.
        """
        now = self._clock()
        others = [endpoint for endpoint in self.all if endpoint not in avoid] or self.all
        ready = [endpoint for endpoint in others if endpoint.is_ready(now)]
        if ready:
            return min(ready, key=lambda endpoint: (endpoint.in_flight, endpoint.served))
        return min(others, key=lambda endpoint: (endpoint.rests_until, endpoint.in_flight))

    def note_success(self, endpoint: Endpoint) -> None:
        """It answers: it is healthy."""
        endpoint.failures = 0
        self._down_since = None

    def note_failure(self, endpoint: Endpoint) -> None:
        """It failed: after several failures in a row it is paused, each time twice as long."""
        endpoint.failures += 1
        if endpoint.is_sick:
            rest_s = min(MOST_REST_S, FIRST_REST_S * 2.0 ** min(10, endpoint.failures - SICK_AFTER))
            endpoint.rests_until = self._clock() + rest_s
        if self._down_since is None and self.are_all_sick:
            self._down_since = self._clock()

    def note_recovery(self, endpoint: Endpoint) -> None:
        """It answers a health check; one more failure and it is paused again."""
        endpoint.failures = min(endpoint.failures, SICK_AFTER - 1)
        endpoint.rests_until = 0.0
        self._down_since = None

    def note_wait(self, endpoint: Endpoint, wait_s: float) -> None:
        """It asked for a pause: the others are used meanwhile."""
        endpoint.rests_until = max(endpoint.rests_until, self._clock() + wait_s)


def find_proxy(url: str) -> str | None:
    """The proxy that the environment names for this URL, if any."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
