"""Our stemmer against NLTK's, on what English looks like and on what it does not."""

import itertools
import random
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from lazily import Lazily
from medthink.metrics.words import stem

porter = Lazily("nltk.stem.porter")


@cache
def their_stemmer():
    return porter.PorterStemmer()


def theirs(word):
    return their_stemmer().stem(word)


# fmt: off
SUFFIXES = [
    "ational", "tional", "enci", "anci", "izer", "bli", "alli", "entli", "eli", "ousli", "ization",
    "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti", "fulli", "logi",
    "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able",
    "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "e", "s",
    "es", "ed", "ing", "y", "ies", "ied", "eed", "sses", "ss", "ll", "ly", "logy", "ally", "fully",
]
# fmt: on
STARTS = (
    "a",
    "b",
    "y",
    "tr",
    "tree",
    "troub",
    "oat",
    "hop",
    "hopp",
    "fall",
    "hiss",
    "fizz",
    "fail",
    "fil",
    "s",
    "ay",
    "by",
    "1",
    "2t",
    "cry",
    "enjoy",
    "radi",
    "geo",
    "psycho",
    "tens",
    "adopt",
    "controll",
    "rat",
    "ceas",
)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", max_size=14))
def test_random_words(word: str) -> None:
    assert stem(word) == theirs(word)


@given(st.sampled_from(STARTS), st.lists(st.sampled_from(SUFFIXES), max_size=3))
def test_words_built_of_suffixes(start: str, ends: list[str]) -> None:
    word = start + "".join(ends)
    assert stem(word) == theirs(word)


def test_all_short_suffix_chains() -> None:
    words = {a + b + c for a, b, c in itertools.product(STARTS[::3], SUFFIXES, SUFFIXES[::3])}
    assert [w for w in sorted(words) if stem(w) != theirs(w)] == []


def test_words_of_few_letters() -> None:
    draw = random.Random(7)
    words = {"".join(draw.choices("aeyilsndtgzo", k=draw.randrange(1, 9))) for _ in range(20_000)}
    assert [w for w in sorted(words) if stem(w) != theirs(w)] == []


def test_irregular_words() -> None:
    for word in ("skies", "dying", "news", "innings", "howe", "proceed", "died", "ties", "spied", "say", "by"):
        assert stem(word) == theirs(word)
