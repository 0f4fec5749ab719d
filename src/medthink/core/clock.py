"""The one place that asks what time it is."""

from datetime import UTC, datetime


def now_utc() -> str:
    """The time now, as `2026-01-31T12:00:00Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
