"""Words of a text, stable numbers for them, and topics of word counts."""

import re
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words in order, in lower case."""
    return _WORD.findall(text.casefold())


def normalise(text: str) -> str:
    """The text without punctuation and capitals, so that spellings that differ only in these are equal."""
    return " ".join(words_of(text))


@lru_cache(maxsize=200_000)
def number_of(word: str) -> int:
    """A number for the word, the same in every process."""
    return crc32(word.encode())


def fit_topics(counted: Any, most: int) -> tuple[Any, Any]:
    """A truncated SVD of the word counts with at most `most` topics, and each text's topic vector."""
    from sklearn.decomposition import TruncatedSVD

    model = TruncatedSVD(max(1, min(most, min(counted.shape) - 1)), random_state=0)
    # Texts that are all alike have no variance; the ratio that is then undefined is of no use here.
    with np.errstate(invalid="ignore"):
        return model, model.fit_transform(counted)
