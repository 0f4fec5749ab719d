"""The one place that asks what time it is."""

import time

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def now_utc() -> str:
    """The time now, as `2026-01-31T12:00:00Z`."""
    return utc_in(0)


def utc_in(seconds: float) -> str:
    """The time this many seconds from now (negative: ago); these strings sort by time."""
    return time.strftime(_FORMAT, time.gmtime(time.time() + seconds))
