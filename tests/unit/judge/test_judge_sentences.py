"""Sentences are found where they are, and nothing that is said is lost."""

import pytest

from medthink.judge.forms import Fault
from medthink.judge.sentences import split_sentences
from medthink.judge.splitting import SplitForm, place_steps
from medthink.judge.units import Source

CASES = [
    ("One. Two! Three?", ["One.", "Two!", "Three?"]),
    ("The mass measures 3.5 cm. It is stable.", ["The mass measures 3.5 cm.", "It is stable."]),
    (
        "Signs (e.g. rim enhancement) fit. Others, i.e. cysts, do not.",
        ["Signs (e.g. rim enhancement) fit.", "Others, i.e. cysts, do not."],
    ),
    ("1. First point.\n2. Second point.", ["First point.", "Second point."]),
    ("- A mass\n- No effusion", ["A mass", "No effusion"]),
    ("Step 1: look. Step 2: think.", ["look.", "think."]),
    ("No stop at the end", ["No stop at the end"]),
    ("Consistent with MS. Not a tumour.", ["Consistent with MS.", "Not a tumour."]),
    ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
    ("见图。正常。", ["见图。", "正常。"]),
    (": . ! …", []),
    ("", []),
    ("First line\r\nSecond line", ["First line", "Second line"]),
    ("See fig. 2 for the mass. Done.", ["See fig. 2 for the mass.", "Done."]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_sentences(text, expected):
    found = [text[span.start : span.end] for span in split_sentences(text)]
    assert found == expected


def place(text: str, *steps: str):
    return place_steps(
        SplitForm("call", steps),
        Source(run="r", case=1, sample=0, what="steps", parts={"rationale": text}, max_units=15),
    )


def test_steps_are_put_back_where_they_stand():
    text = "The mass  is large,\nand it enhances."
    units = place(text, "The mass is large,", "and it enhances.")
    assert [(unit.start, unit.end) for unit in units] == [(0, 19), (20, 36)]
    assert all(text[unit.start : unit.end] == unit.text for unit in units)


def test_a_cut_may_leave_out_a_fifth_of_the_letters_and_no_more():
    assert len(place("One two six ten cut.", "One two six ten")) == 1
    assert "leave out 25" in place("One two six cut.", "One two six").complaint


def test_the_same_words_twice_are_two_steps_at_two_places():
    units = place("It grows. It grows.", "It grows.", "It grows.")
    assert [unit.start for unit in units] == [0, 10]
    assert units[0].id != units[1].id


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (["The mass is small."], "not an exact copy"),
        (["it enhances.", "The mass is large,"], "not an exact copy of the text after step 1"),
        (["The mass is large,"], "leave out"),
        ([], "at least one"),
        (["The"] * 16, "16 steps"),
        (["…"], "not an exact copy"),
    ],
)
def test_a_cut_that_is_not_the_rationale_is_refused(steps, problem):
    fault = place("The mass is large, and it enhances.", *steps)
    assert isinstance(fault, Fault)
    assert problem in fault.complaint
