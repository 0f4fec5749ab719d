"""ROUGE on published values and corner cases; equality with the library is in tests/oracle."""

import pytest

from medthink.core.errors import UsageError
from medthink.metrics.rouge import NO_OVERLAP, Rouge


def f1(kind: str, reference: str, candidate: str, *, stem: bool = True) -> float:
    return Rouge((kind,), stem=stem).score(reference, candidate)[kind].f1  # type: ignore[arg-type,index]


def test_corner_cases() -> None:
    assert f1("rouge2", "effusion", "effusion") == 0
    assert f1("rouge1", "肺炎", "肺炎") == 0
    assert f1("rouge1", "2.5 cm", "25 cm") == pytest.approx(0.4)
    assert f1("rouge1", "no pneumothorax", "pneumothorax") == pytest.approx(2 / 3)
    assert f1("rouge1", "T2-weighted", "T2 weighted") == 1
    assert f1("rouge1", "tumour", "tumor") == 0
    assert f1("rouge1", "enhancing masses", "enhanced mass") == 1
    assert f1("rouge1", "enhancing masses", "enhanced mass", stem=False) == 0


@pytest.mark.parametrize(("reference", "candidate"), [("", ""), ("", "a mass"), ("a mass", ""), ("\n", "\n\n")])
def test_empty_texts_overlap_with_nothing(reference: str, candidate: str) -> None:
    assert set(Rouge().score(reference, candidate).values()) == {NO_OVERLAP}


def test_precision_and_recall_are_not_swapped() -> None:
    overlap = Rouge(("rouge1",)).score("a large cystic mass", "mass")["rouge1"]
    assert (overlap.precision, overlap.recall) == (1.0, 0.25)


def test_summary_lcs_reads_lines_in_any_order() -> None:
    assert f1("rougeLsum", "one two\nthree four", "three four\none two") == 1
    assert f1("rougeL", "one two\nthree four", "three four\none two") == 0.5


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="rouge7"):
        Rouge(("rouge7",))  # type: ignore[arg-type]


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Rouge().score_all(["a"], [])


def test_words_of_three_letters_keep_their_ending() -> None:
    assert Rouge(("rouge1",)).score("gas", "ga")["rouge1"].f1 == 0
    assert Rouge(("rouge1",)).score("mass", "masses")["rouge1"].f1 == 1
