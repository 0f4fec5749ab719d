"""Finding-level agreement on hand-checked sentences.

`finding_pairs.jsonl` holds what should come out, written by reading the sentences; `finding_limits.jsonl` holds what
should come out and does not, each as a strict expected failure named on the metric's card.
"""

import hashlib
import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medthink.metrics.findings import VERSION, Statement, compare_findings, extract_statements, read_lexicon
from medthink.metrics.findings.agreement import FINDING_VALUES
from medthink.metrics.findings.lexicon import is_english, lexicon_form
from medthink.metrics.words import normalise_spelling

HERE = Path(__file__).parent
LEXICON = Path(str(resources.files("medthink.metrics.findings") / "lexicon.toml"))


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


PAIRS = rows("finding_pairs.jsonl")
LIMITS = rows("finding_limits.jsonl")
STATED = rows("finding_statements.jsonl")


def assert_agreement(row: dict[str, Any]) -> None:
    agreement = compare_findings(row["reference"], row["candidate"])
    counted = (len(agreement.matched), len(agreement.reference), len(agreement.candidate))
    assert counted == (row["matched"], row["in_reference"], row["in_candidate"]), agreement
    assert sorted(c.kind for c in agreement.conflicts) == sorted(row["conflicts"]), agreement


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: f"{row['reference']} / {row['candidate']}")
def test_pairs(row: dict[str, Any]) -> None:
    assert_agreement(row)


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row["limit"])
@pytest.mark.xfail(strict=True, reason="a limit stated on the card", raises=AssertionError)
def test_known_limits(row: dict[str, Any]) -> None:
    assert_agreement(row)


@pytest.mark.parametrize("row", STATED, ids=lambda row: row["text"])
def test_statements(row: dict[str, Any]) -> None:
    assert list(extract_statements(row["text"])) == [msgspec.convert(s, Statement) for s in row["statements"]]


def test_the_corpus_is_large_enough_and_has_no_pair_twice() -> None:
    assert len(PAIRS) >= 200
    assert len({(row["reference"], row["candidate"]) for row in PAIRS}) == len(PAIRS)


def test_every_text_agrees_with_itself() -> None:
    for row in PAIRS:
        agreement = compare_findings(row["reference"], row["reference"])
        assert agreement.f1 in (1.0, None), row
        assert agreement.conflicts == (), row


def test_swapping_the_texts_swaps_precision_and_recall() -> None:
    for row in PAIRS:
        there = compare_findings(row["reference"], row["candidate"])
        back = compare_findings(row["candidate"], row["reference"])
        assert (there.precision, there.recall, there.f1) == (back.recall, back.precision, back.f1), row
        if "size" not in row["conflicts"]:  # the tolerance of a size is a share of the reference's
            assert len(there.conflicts) == len(back.conflicts), row


def test_nothing_stated_is_unknown_not_zero() -> None:
    silent = compare_findings("The patient came.", "The patient left.")
    assert (silent.precision, silent.recall, silent.f1) == (None, None, None)
    missed = compare_findings("Pneumothorax.", "")
    assert (missed.precision, missed.recall, missed.f1) == (None, 0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There is a mass in the left kidney.", True),
        ("Es zeigt sich eine Raumforderung der linken Niere mit Verkalkung.", False),
        ("Se observa una masa en el riñón izquierdo con calcificación.", False),
        ("左腎に腫瘤を認める。", False),
        ("Small pleural effusion.", True),
        ("", True),
    ],
)
def test_other_languages_are_told(text: str, expected: bool) -> None:
    assert is_english(text) is expected


def test_a_text_in_another_language_has_no_score() -> None:
    foreign = compare_findings("There is a mass in the left kidney.", "Es gibt eine Raumforderung in der linken Niere.")
    assert [read(foreign) for read in FINDING_VALUES.values()] == [None] * 4


def test_rules_and_lexicon_carry_one_version() -> None:
    assert read_lexicon().version == VERSION


def test_no_phrase_of_the_lexicon_means_two_things() -> None:
    lexicon = read_lexicon()
    listed: dict[object, set[str]] = {}
    for section, names in tomllib.loads(LEXICON.read_text(encoding="utf-8")).items():
        if section in ("findings", "absent", "sites", "sides", "cues"):
            for name, text in names.items():
                for phrase in text.split("|"):
                    words = normalise_spelling(phrase).split()
                    key = tuple(words) if section in ("sides", "cues") else tuple(map(lexicon_form, words))
                    listed.setdefault((section in ("sides", "cues"), key), set()).add(name)
    assert {key: names for key, names in listed.items() if len(names) > 1} == {}
    assert lexicon.digest == hashlib.sha256(LEXICON.read_bytes()).hexdigest()


def test_the_lexicon_is_consistent() -> None:
    lexicon = read_lexicon()
    phrases = [(e.words, e.kind, e.name) for table in (lexicon.exact, lexicon.stemmed) for e in table.entries.values()]
    findings = {name for _, kind, name in phrases if kind == "finding"}
    sites = {name for _, kind, name in phrases if kind == "site"}
    assert findings >= {*lexicon.broader, *lexicon.broader.values(), *lexicon.unsided, *lexicon.unsized}
    assert sites >= {*lexicon.part_of, *lexicon.part_of.values()}


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    extract_statements(text)


PIECES = [
    "no",
    "effusion",
    "left",
    "right",
    ",",
    "or",
    "and",
    "not seen",
    "is",
    "5 mm",
    "mass",
    "but",
    "resolved",
    "liver",
]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
def test_any_jumble_agrees_with_itself(text: str) -> None:
    agreement = compare_findings(text, text)
    assert agreement.f1 in (1.0, None)
    assert agreement.conflicts == ()
