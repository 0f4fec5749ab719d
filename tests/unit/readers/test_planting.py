"""Planted checks are made of what is known to be true, by edits whose truth is known."""

from random import Random

from medthink.judge.units import Unit
from medthink.readers.assignment import make_planted_check

OPTIONS = {"A": "Meningioma", "B": "Glioblastoma"}


def check(*texts: str, supported=(), is_true=False, seed=0):
    units = [Unit(f"u{place}", "rationale", 0, len(text), text) for place, text in enumerate(texts)]
    return make_planted_check(
        units,
        supported=frozenset(supported),
        options=OPTIONS,
        answer="Meningioma",
        is_true=is_true,
        chance=Random(seed),
    )


def test_a_statement_that_names_the_diagnosis_is_known_in_that_alone():
    text = "The left mass is meningioma."
    assert {check(text, seed=seed).text for seed in range(8)} == {"The left mass is glioblastoma."}
    texts = {check(text, supported=["u0"], seed=seed).text for seed in range(20)}
    assert texts == {"The left mass is glioblastoma.", "The right mass is meningioma."}


def test_what_no_judge_supports_is_not_planted():
    assert check("CT showed a mass on the left.") is None
    assert check("It is not meningioma on the left.") is None
    found = check("CT showed a mass on the left.", supported=["u0"], is_true=True)
    assert (found.text, found.is_true) == ("CT revealed a mass on the left.", True)


def test_an_edited_claim_that_the_text_makes_elsewhere_is_not_planted():
    texts = ("A nodule was seen on the left.", "A small nodule was also seen on the right.")
    assert check(*texts, supported=["u0"]) is None
    assert check(texts[0], supported=["u0"]).text == "A nodule was seen on the right."
