"""JSON objects in replies: the whole reply, a fenced block, or a fragment in prose."""

from typing import Any

from medthink.core.errors import DataError
from medthink.core.jsonio import parse_json
from medthink.models.wires.reasoning import MARKS
from medthink.workflow.ask import Unparsed

_FENCE = "```"


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object, if the text is exactly that."""
    try:
        value = parse_json(text.encode("utf-8"))
    except (DataError, UnicodeEncodeError):
        return None
    return value if isinstance(value, dict) else None


def find_object(text: str) -> dict[str, Any] | None:
    """The JSON object in the text: the text itself, its last fenced block, or all from the first brace to the last."""
    start, end = text.find("{"), text.rfind("}")
    for candidate in (text, last_fenced(text), text[start : end + 1] if 0 <= start < end else None):
        value = None if candidate is None else read_object(candidate.strip())
        if value is not None:
            return value
    return None


def last_fenced(text: str) -> str | None:
    """The content of the last fenced block, without the language on its first line."""
    pieces = text.split(_FENCE)
    if len(pieces) < 3:
        return None
    # Odd pieces lie between an opening and a closing fence.
    block = pieces[len(pieces) - 2 if len(pieces) % 2 else len(pieces) - 3]
    language, newline, rest = block.partition("\n")
    if newline and language.strip().isalnum():
        return rest
    return block.removeprefix("json")


def strip_code_fence(text: str) -> str:
    """The text without the fence, if it is exactly one fenced block."""
    stripped = text.strip()
    if stripped.startswith(_FENCE) and stripped.endswith(_FENCE) and stripped.count(_FENCE) == 2:
        return (last_fenced(stripped) or "").strip()
    return stripped


def drop_thinking(text: str) -> str | Unparsed:
    """The reply without its thinking, or Unparsed if the thinking never ends."""
    for opening, closing in MARKS:
        rest = _drop(text, opening, closing)
        if rest is None:
            return Unparsed("the reply ends while still thinking")
        text = rest
    return text.strip()


def _drop(text: str, opening: str, closing: str) -> str | None:
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few characters change length in lower case; then only marks written exactly so are found.
        lowered = text
    kept: list[str] = []
    place = 0
    while (end := lowered.find(closing, place)) >= 0:
        start = lowered.find(opening, place, end)
        if start >= 0:
            kept.append(text[place:start])
        place = end + len(closing)
    if lowered.find(opening, place) >= 0:
        return None
    return "".join(kept) + text[place:]
