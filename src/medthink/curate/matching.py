"""Which item of a list is the right diagnosis: an equal name, spelling or brackets aside; else a proposal.

Shared words, one name inside another and similar spellings are not proof: "monostotic" and "polyostotic", "type I" and
"type II", "Hodgkin" and "non-Hodgkin" are close in spelling and far apart in meaning. They are proposed to a person or
a model.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from medthink.curate.names import core_words, name_key, plain_words, without_brackets, words_of

_CLOSE = 88


class GoldMatch(NamedTuple):
    """An item of the list, how it was matched, and whether that is conclusive."""

    item: str
    by: str
    is_certain: bool


_CERTAIN: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("exact", lambda name: name),
    ("normalised", name_key),
    ("bracket-dropped", lambda name: name_key(without_brackets(name))),
)


def match_gold(gold: str, items: Sequence[str]) -> GoldMatch | None:
    """The item that is the right diagnosis, or the likeliest one, or None."""
    for by, form in _CERTAIN:
        found = [item for item in items if form(item) == form(gold)]
        if len(found) == 1:
            return GoldMatch(found[0], by, is_certain=True)
        if found:
            return GoldMatch(found[0], f"{by}, twice", is_certain=False)
    return _propose(gold, items)


def _propose(gold: str, items: Sequence[str]) -> GoldMatch | None:
    core, words = set(core_words(gold)), set(words_of(gold))
    for item in items:
        if set(core_words(item)) == core:
            return GoldMatch(item, "same core words", is_certain=False)
    close = max(items, key=lambda item: fuzz.token_sort_ratio(item.lower(), gold.lower()), default=None)
    if close is not None and fuzz.token_sort_ratio(close.lower(), gold.lower()) >= _CLOSE:
        return GoldMatch(close, "close spelling", is_certain=False)
    for item in items:
        own = set(words_of(item))
        if own and (own < words or own > words):
            return GoldMatch(item, "one inside the other", is_certain=False)
    return None


def is_parent(name: str, gold: str) -> bool:
    """Whether the name is a broader term for the right diagnosis: every patient with the diagnosis has it too."""
    own, right = plain_words(name), plain_words(gold)
    return len(own) < len(right) and set(own) < set(right) and own[-1:] == right[-1:]
