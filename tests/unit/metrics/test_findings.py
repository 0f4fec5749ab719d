"""Finding-level agreement on hand-checked sentences.

`finding_pairs.jsonl` holds what should come out, written by reading the sentences; `finding_limits.jsonl` holds what
should come out and does not, each as a strict expected failure named on the metric's card.
"""

import hashlib
import itertools
import json
import random
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medthink.metrics.findings import VERSION, Statement, compare_findings, extract_statements, read_lexicon
from medthink.metrics.findings.agreement import FINDING_VALUES, compare_statements
from medthink.metrics.findings.lexicon import is_english, lexicon_form
from medthink.metrics.words import normalise_spelling

HERE = Path(__file__).parent
LEXICON = Path(str(resources.files("medthink.metrics.findings") / "lexicon.toml"))


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


PAIRS = rows("finding_pairs.jsonl")
SENTENCES = [
    f"There is {what} {where}."
    for what in ("a mass", "a 3 cm mass", "a cyst", "no lesion", "a lesion")
    for where in ("", "in the left kidney", "in the right kidney", "in the liver", "on the left")
]
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


@pytest.mark.parametrize(
    ("written", "mm"),
    [
        ("8 mm x 1.2 cm", 12), ("3cm x 20mm", 30), ("5 mm to 1 cm", 10), (".5 cm", 5), ("1,200 mm", 1200),
        ("2-cm", 20), ("2 - cm", 20), ("2-3 cm", 30), ("2,5 cm", 25), ("2 x 3 x 4 cm", 40), ("0.8 × 1.2 × 15 mm", 15),
        ("12-mm", 12), ("1,2 x 0,8 cm", 12), ("3 centimetres", 30), ("0,125 cm", 1.25), ("10 by 2-cm", 100),
        ("½ cm", 5), ("1½ cm", 15), ("1 ½-cm", 15), ("¾ × 1¼ cm", 12.5), ("2⅓ cm", 70 / 3), ("⅛ cm", 1.25),
    ],
)  # fmt: skip
def test_sizes_are_read_number_by_number_with_their_units(written: str, mm: float) -> None:
    (statement,) = extract_statements(f"There is a {written} mass in the liver.")
    assert statement.size_mm == pytest.approx(mm)


NUMBERS = st.one_of(st.integers(1, 999).map(str), st.decimals("0.1", "99.9", places=1).map(str))
UNITS = {"mm": 1, " mm": 1, "-mm": 1, "cm": 10, " cm": 10, " centimetres": 10}


@given(
    parts=st.lists(st.tuples(NUMBERS, st.sampled_from(["", *UNITS])), min_size=1, max_size=3),
    last=st.sampled_from(list(UNITS)),
    joint=st.sampled_from([" x ", "x", " × ", " by ", " to "]),
)
@settings(max_examples=200, deadline=None)
def test_a_measurement_is_the_largest_of_its_numbers_each_in_its_unit(parts, last, joint) -> None:  # type: ignore[no-untyped-def]
    parts[-1] = (parts[-1][0], last)
    units = [next(unit for _, unit in parts[place:] if unit) for place in range(len(parts))]
    largest = max(float(number) * UNITS[unit] for (number, _), unit in zip(parts, units, strict=True))
    text = joint.join(f"{number}{unit}" for number, unit in parts)
    (statement,) = extract_statements(f"There is a {text} mass.")
    assert statement.size_mm == pytest.approx(largest)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_the_order_of_statements_changes_no_number(seed: int) -> None:
    draw = random.Random(seed)
    texts = [[draw.choice(SENTENCES) for _ in range(draw.randint(2, 6))] for _ in range(2)]
    values = set()
    for _ in range(4):
        found = compare_findings(*(" ".join(draw.sample(text, len(text))) for text in texts))
        values.add((found.f1, len(found.conflicts)))
    assert len(values) == 1


def test_as_many_statements_are_matched_as_there_can_be() -> None:
    # Equal statements pair first if pairs are taken greedily, and leave two that do not match.
    reference = (Statement("mass", side="left"), Statement("mass", side="left", site="kidney"))
    candidate = (Statement("mass", side="left"), Statement("mass", side="left", site="liver"))
    for order in itertools.permutations(candidate):
        assert len(compare_statements(reference, order).matched) == 2
        assert len(compare_statements(order, reference).matched) == 2
