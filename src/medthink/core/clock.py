"""The one place that asks what time it is."""

import time


def now_utc() -> str:
    """The time now, as `2026-01-31T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
