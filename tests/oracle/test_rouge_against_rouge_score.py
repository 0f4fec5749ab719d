"""Our ROUGE against `rouge-score`, to 1e-9, on any text."""

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazily import Lazily
from medthink.metrics.rouge import KINDS, Rouge

rouge_scorer = Lazily("rouge_score.rouge_scorer")
OURS = {stem: Rouge(stem=stem) for stem in (False, True)}

HOSTILE = [
    "",
    " ",
    "\n",
    "\n\n\n",
    ".",
    "a",
    "effusion",
    "Effusion\n",
    "oedème",
    "Œdème du poumon",
    "ﬁbrosis",
    "İstanbul K 5 Å ſ",
    "肺炎",
    "肺炎 with effusion",
    "\ud800 lone",
    "x\u2028y\u2029z",
    "a\r\nb\rc\n\nd",
    "\x00\x1c\x85",
    "2.5 cm",
    "25 cm",
    "T2-weighted",
    "T2 weighted",
    "no pneumothorax",
    "the the the the",
    "the of the of the of",
    "dying skies proceed\nnews innings",
    "\u200bzero\u200bwidth",
    "١٢٣ 123 ²",
    "a_b__c",
    "ẞ straße",
    "😀 mass 😀",
    "tumour tumours tumoural\ntumor tumors",
    "a b a b a\nb a b a b",
    "b a\na b\nb b a a",
    " ".join("abcde" * 40),
]
WORDS = [
    "the",
    "a",
    "of",
    "no",
    "mass",
    "masses",
    "cyst",
    "cystic",
    "left",
    "right",
    "enhancing",
    "enhanced",
    "é",
    "\n",
]
texts = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="aAbB yseding\n.-é1", max_size=60),
    st.lists(st.sampled_from(WORDS), max_size=70).map(" ".join),
)


@cache
def their_scorer(stem):
    return rouge_scorer.RougeScorer(list(KINDS), use_stemmer=stem)


def assert_equal(reference: str, candidate: str) -> None:
    for stem in (False, True):
        theirs, ours = their_scorer(stem).score(reference, candidate), OURS[stem].score(reference, candidate)
        for kind in KINDS:
            assert tuple(ours[kind]) == pytest.approx(tuple(theirs[kind]), abs=1e-9), (kind, stem)


@settings(max_examples=300)
@given(texts, texts)
def test_any_two_texts(reference: str, candidate: str) -> None:
    assert_equal(reference, candidate)


def test_hostile_texts_crossed() -> None:
    for reference in HOSTILE:
        for candidate in HOSTILE:
            assert_equal(reference, candidate)


def test_long_texts_of_few_words() -> None:
    draw = random.Random(3)
    for _ in range(40):
        assert_equal(*(" ".join(draw.choices(WORDS, k=draw.randrange(60, 200))) for _ in range(2)))


def test_asking_for_one_kind_gives_the_same_value() -> None:
    for kind in KINDS:
        alone = Rouge((kind,)).score("the mass\nand a cyst", "a mass\nthe cyst and")
        assert alone == {kind: OURS[True].score("the mass\nand a cyst", "a mass\nthe cyst and")[kind]}
