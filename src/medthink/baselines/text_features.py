"""Words of a text, stable hashes of them, and topics of word counts."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from medthink.cases.case import Case
from medthink.cases.sections import SECTIONS

_WORD = re.compile(r"[^\W_]+")


def tokenise(text: str) -> list[str]:
    """The words in order, in lower case."""
    return _WORD.findall(text.casefold())


def normalise(text: str) -> str:
    """The text without punctuation and capitals, so that spellings that differ only in these are equal."""
    return " ".join(tokenise(text))


@lru_cache(maxsize=200_000)
def hash_word(word: str) -> int:
    """A number for the word, the same in every process."""
    return crc32(word.encode())


def fit_topics(counted: Any, most: int) -> tuple[Any, Any]:
    """A truncated SVD of the word counts with at most `most` topics, and each text's topic vector."""
    from sklearn.decomposition import TruncatedSVD

    model = TruncatedSVD(max(1, min(most, min(counted.shape) - 1)), random_state=0)
    # Texts that are all alike have no variance; the ratio that is then undefined is of no use here.
    with np.errstate(invalid="ignore"):
        return model, model.fit_transform(counted)


_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
# Experts head the last section in several ways; the others are headed by their name.
_HEADING = re.compile(
    r"^\W*(?:"
    + "|".join(rf"(?P<{name}>{name.replace('_', ' ')})" for name in SECTIONS[:-1])
    + r"|(?P<teaching_points>(?:take[ -]home|teaching)[ -](?:message|point)s?[ /a-z]*))[*_ ]*(?::[*_]*|$)",
    re.IGNORECASE | re.MULTILINE,
)


class Passage(NamedTuple):
    """A piece of text about a (normalised) diagnosis; `is_own` if that is the case's right answer."""

    diagnosis: str
    text: str
    is_own: bool


def passages_of(case: Case) -> Iterator[Passage]:
    """One passage about the right diagnosis, and one for each wrong option that a sentence names alone."""
    right = normalise(case.question.options[case.reference.answer])
    names = [name for name in map(normalise, case.question.options.values()) if name and name != right]
    own: list[str] = []
    rivals: dict[str, list[str]] = {}
    for sentence in _BETWEEN_SENTENCES.split(_looks_like(case)):
        words = f" {normalise(sentence)} "
        named = [name for name in names if f" {name} " in words]
        if not named:
            own.append(sentence)
        elif f" {right} " not in words:
            for name in named:
                rivals.setdefault(name, []).append(sentence)
    yield Passage(right, "\n".join(own), is_own=True)
    for name, sentences in rivals.items():
        yield Passage(name, "\n".join(sentences), is_own=False)


def sections_of(discussion: str) -> dict[str, str]:
    """The six sections of an expert's discussion, empty where it has no such heading."""
    found: dict[str, str] = dict.fromkeys(SECTIONS, "")
    headings = list(_HEADING.finditer(discussion))
    ends = [*(heading.start() for heading in headings), len(discussion)][1:]
    for heading, end in zip(headings, ends, strict=True):
        name = str(heading.lastgroup)
        found[name] = f"{found[name]}\n{discussion[heading.end() : end].strip()}".strip()
    return found


def _looks_like(case: Case) -> str:
    """The discussion's imaging section; without such a heading, captions, findings and the whole discussion."""
    seen = [*(image.caption for image in case.reference.images), case.reference.findings]
    imaging = sections_of(case.reference.discussion)["imaging_perspective"]
    return imaging or "\n".join([*seen, case.reference.discussion])
