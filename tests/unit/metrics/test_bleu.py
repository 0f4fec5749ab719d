"""BLEU-2 on values made by RadCliQ's own scorer, and against NLTK."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.metrics.rouge import bleu2

GOLDEN = [
    ("No acute cardiopulmonary process.", "No acute findings.", 0.38940039153570244),
    (
        "Small bilateral pleural effusions with bibasilar atelectasis.",
        "Bilateral pleural effusions and basilar atelectasis.",
        0.5180586332905648,
    ),
    ("Mild cardiomegaly. No pleural effusion.", "Mild cardiomegaly with clear lungs.", 0.2676810248362385),
    ("effusion", "effusion", 0.3162277660168379),
    ("a a a", "a", 0.04279677428117004),
]


@pytest.mark.parametrize(("reference", "candidate", "expected"), GOLDEN)
def test_golden(reference: str, candidate: str, expected: float) -> None:
    assert bleu2(reference, candidate) == pytest.approx(expected, abs=1e-12)


def test_empty_texts_score_nothing() -> None:
    assert [bleu2("", ""), bleu2("a", ""), bleu2("", "a"), bleu2("a", "b"), bleu2(" ", "  ")] == [0.0] * 5


def test_only_spaces_and_full_stops_cut_words() -> None:
    assert bleu2("mass\nin lung", "mass in lung") < 1
    assert bleu2("2.5 cm mass", "2 .5 CM mass") == pytest.approx(1.0)


words = st.lists(st.sampled_from(["a", "b", "c", "no", "mass.", "2.5"]), max_size=12).map(" ".join)


@given(words, words)
def test_equal_to_nltk(reference: str, candidate: str) -> None:
    bleu_score = pytest.importorskip("nltk.translate.bleu_score")
    ref, cand = ([w for w in t.lower().replace(".", " .").split(" ") if w] for t in (reference, candidate))
    smoothing = bleu_score.SmoothingFunction().method1
    theirs = bleu_score.sentence_bleu([ref], cand, (0.5, 0.5), smoothing_function=smoothing) if cand and ref else 0
    assert bleu2(reference, candidate) == pytest.approx(theirs, abs=1e-12)
