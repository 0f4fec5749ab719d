"""The tokens that a reply counts, read so that its cost is never below the invoice.

Where the parts and their total disagree, the reading that costs more counts, and the usage says that it may be more.
"""

from typing import Any, NamedTuple

from msgspec.structs import replace

from medthink.models.request import Usage

# Above this a JSON number is no longer exact, and no reply has that many tokens.
_LIMIT = 2**53


class TokenCounts(NamedTuple):
    """The tokens of a reply, None if unknown, and the fields with invalid values."""

    usage: Usage | None
    doubts: tuple[str, ...] = ()

    def at_tier(self, tier: Any) -> "TokenCounts":
        """The same at the service tier that the reply names beside them."""
        if self.usage is None or not isinstance(tier, str):
            return self
        return self._replace(usage=replace(self.usage, tier=tier))


class TokenCountReader:
    """Reads counts out of a reply's usage object, and records the names of invalid ones."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.doubts: list[str] = [] if isinstance(source, dict) or source is None else ["usage"]

    def read(self, *path: str) -> int | None:
        """The count at this path; None if it is absent or invalid."""
        value = self._find(path)
        if value is None:
            return None
        count = _whole(value)
        if count is None:
            self.doubts.append(path[-1])
        return count

    def read_text(self, *path: str) -> str:
        """The text at this path; empty if there is none."""
        value = self._find(path)
        return value if isinstance(value, str) else ""

    def settle(self, counted: Usage, total: int | None = None) -> TokenCounts:
        """The usage, with what does not add up read as the dearer of its meanings; none if no token was asked in."""
        if not counted.input:
            if any((counted.cached, counted.output, total)):
                self.doubts.append("input tokens")
            return self.unknown()
        usage = self._settle_input(counted)
        usage = self._settle_output(usage, total)
        return TokenCounts(usage, tuple(self.doubts))

    def unknown(self) -> TokenCounts:
        """Nobody knows how many tokens there were."""
        return TokenCounts(None, tuple(self.doubts))

    def _find(self, path: tuple[str, ...]) -> Any:
        value: Any = self._source
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def _settle_input(self, usage: Usage) -> Usage:
        """Parts of the input that are larger than all of it are counted in addition to it."""
        parts = usage.cached + usage.written + usage.written_long
        if parts <= usage.input:
            return usage
        self.doubts.append("cached tokens")
        return replace(usage, input=usage.input + parts, is_least=True)

    def _settle_output(self, usage: Usage, total: int | None) -> Usage:
        output = usage.output
        if usage.reasoning > output:
            output += usage.reasoning
            is_doubtful = total is None
        else:
            is_doubtful = False
        missing = 0 if total is None else total - usage.input - output
        # Reasoning that is counted in addition to the completion is what the total has on top.
        is_doubtful |= missing not in (0, usage.reasoning)
        if is_doubtful:
            self.doubts.append("reasoning tokens" if total is None else "total tokens")
        return replace(usage, output=output + max(0, missing), is_least=usage.is_least or is_doubtful)


def _whole(value: Any) -> int | None:
    """The value as a count of tokens: a whole number, or what can only mean one."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 17:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LIMIT
    return value if is_count else None
