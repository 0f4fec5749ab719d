"""Suggestions for misspelt names."""

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """`did you mean NAME?` for the closest known name, or "" if none is close; a cutoff of 1 needs an exact match."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"did you mean {close[0]}?" if close else ""


def suggest(word: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy: the closest known name if there is one, followed by `otherwise`."""
    return " ".join(part for part in (did_you_mean(word, known), otherwise) if part)
