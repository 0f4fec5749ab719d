"""Words of a text, and stable numbers for them."""

import re
from functools import lru_cache
from zlib import crc32

_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words in order, in one case."""
    return _WORD.findall(text.casefold())


def normalise(text: str) -> str:
    """The text as its words alone: two spellings of one diagnosis that differ in signs or case are the same."""
    return " ".join(words_of(text))


@lru_cache(maxsize=200_000)
def number_of(word: str) -> int:
    """A number that stands for the word in every process."""
    return crc32(word.encode())
