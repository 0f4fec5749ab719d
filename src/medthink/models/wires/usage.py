"""Token counts of replies: an invalid count is unknown, and is recorded as a doubt."""

from typing import Any, NamedTuple

from medthink.models.request import Usage

# Above this a JSON number is no longer exact, and no reply has that many tokens.
_LIMIT = 2**53


class Counted(NamedTuple):
    """The tokens of a reply, None if unknown, and the fields with invalid values."""

    usage: Usage | None
    doubts: tuple[str, ...] = ()


class CountReader:
    """Reads counts out of a reply's usage object, and records the names of invalid ones."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.doubts: list[str] = [] if isinstance(source, dict) or source is None else ["usage"]

    def read(self, *path: str) -> int | None:
        """The count at this path; None if it is absent or invalid."""
        value: Any = self._source
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return None
        count = _whole(value)
        if count is None:
            self.doubts.append(path[-1])
        return count

    def settle(self, tokens_in: int | None, tokens_out: int | None, *, cached: int, reasoning: int) -> Counted:
        """The usage; parts that are larger than their whole are unknown and count as 0."""
        if tokens_in is None or tokens_out is None:
            return Counted(None, tuple(self.doubts))
        if cached > tokens_in:
            self.doubts.append("cached tokens")
            cached = 0
        if reasoning > tokens_out:
            self.doubts.append("reasoning tokens")
            reasoning = 0
        return Counted(Usage(tokens_in, cached, tokens_out, reasoning), tuple(self.doubts))


def _whole(value: Any) -> int | None:
    """The value as a count of tokens: a whole number, or what can only mean one."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 17:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LIMIT
    return value if is_count else None
