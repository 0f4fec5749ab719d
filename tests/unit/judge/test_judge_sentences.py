"""Sentences are found where they are, and nothing that is said is lost."""

import msgspec
import pytest

from medthink.judge.segmentation import SplitForm, align_steps
from medthink.judge.units import UnitSource, split_source
from medthink.workflow.clauses import split_clauses
from medthink.workflow.forms import ReplyFault
from medthink.workflow.sentences import split_sentences

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
    ("Pt. was well. Then ill.", ["Pt. was well.", "Then ill."]),
    ("Pt. Smith was seen by Dr. Brown. The rest is old.", ["Pt. Smith was seen by Dr. Brown.", "The rest is old."]),
    ("Image No. 3 shows it. It is large.", ["Image No. 3 shows it.", "It is large."]),
    ("No. The lung is clear.", ["No.", "The lung is clear."]),
    ("Gadolinium i.v. was given. It enhances.", ["Gadolinium i.v. was given.", "It enhances."]),
    ("Seen 60 s p.i. The mass washes out.", ["Seen 60 s p.i.", "The mass washes out."]),
    ("A 45 y.o. man. He coughs.", ["A 45 y.o. man.", "He coughs."]),
    ("Mass in the R. upper lobe. No effusion.", ["Mass in the R. upper lobe.", "No effusion."]),
    ("Seen in Jan. 2021 first. It grew.", ["Seen in Jan. 2021 first.", "It grew."]),
    ("M. tuberculosis was found. It is treated.", ["M. tuberculosis was found.", "It is treated."]),
    ("R. Kidney is small. L. is not.", ["R. Kidney is small.", "L. is not."]),
    ("It measures 5 cm. The rest is normal.", ["It measures 5 cm.", "The rest is normal."]),
    ("The TE was 135 ms. Choline is high.", ["The TE was 135 ms.", "Choline is high."]),
    ("Fracture of L1. No cord lesion.", ["Fracture of L1.", "No cord lesion."]),
    ("It is common. [1, 2] It is benign.", ["It is common. [1, 2]", "It is benign."]),
    ("A mass.&#xA;No effusion.", ["A mass.", "No effusion."]),
    ("A. Pneumonia is likely.\nB. Oedema is not.", ["Pneumonia is likely.", "Oedema is not."]),
    ("See Fig. IV and seg. VII below. Done.", ["See Fig. IV and seg. VII below.", "Done."]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_sentences(text, expected):
    found = [text[span.start : span.end] for span in split_sentences(text)]
    assert found == expected


def place(text: str, *steps: str):
    return align_steps(
        SplitForm("call", steps),
        UnitSource(run="r", case=1, sample=0, what="steps", parts={"rationale": text}, max_units=15),
    )


LONG = (
    "The right kidney shows a large mass with a central scar and no fat, but the left kidney is normal in size; "
    "there is no thrombus in the renal vein, so surgery is possible."
)


def test_long_sentences_are_cut_between_clauses_and_lose_no_negation():
    spans = split_clauses(LONG)
    assert [LONG[span.start : span.end] for span in spans] == [
        "The right kidney shows a large mass with a central scar and no fat,",
        "but the left kidney is normal in size;",
        "there is no thrombus in the renal vein,",
        "so surgery is possible.",
    ]
    whole = (
        "There is no pleural effusion, consolidation or pneumothorax, and no lymph nodes, but calcification "
        "(old, small, and the size of a pea) lies there still."
    )
    assert [whole[span.start : span.end] for span in split_clauses(whole)] == [
        "There is no pleural effusion, consolidation or pneumothorax, and no lymph nodes,",
        "but calcification (old, small, and the size of a pea) lies there still.",
    ]
    assert len(split_clauses("The mass is large, but it is benign.")) == 1, "short sentences stay whole"


def test_too_many_clauses_leave_sentences():
    source = UnitSource(run="r", case=1, sample=0, what="steps", parts={"rationale": LONG}, is_cut_by_model=True)
    assert len(split_source(source).units) == 4
    few = msgspec.structs.replace(source, max_units=3)
    assert [unit.text for unit in split_source(few).units] == [LONG]


def test_steps_are_put_back_where_they_stand():
    text = "The mass  is large,\nand it enhances."
    units = place(text, "The mass is large,", "and it enhances.")
    assert [(unit.start, unit.end) for unit in units] == [(0, 19), (20, 36)]
    assert all(text[unit.start : unit.end] == unit.text for unit in units)


def test_a_lightly_reworded_step_still_shows_the_text_itself():
    text = "1. There is a tumour of 3cm seen in the left lung. No effusion was noted."
    units = place(text, "A tumor of 3 cm is shown in the left lung", "no effusion")
    assert [unit.text for unit in units] == [
        "1. There is a tumour of 3cm seen in the left lung.",
        "No effusion was noted.",
    ]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("An effusion in the left lung of 3 cm is possible.", "a negation"),
        ("No effusion in the right lung of 3 cm is possible.", "a side"),
        ("No effusion in the left lung of 6 cm is possible.", "a number"),
        ("No effusion in the left lung of 3 mm is possible.", "a word"),
        ("No effusion in the left lung of 3 cm.", "omit the end of the text"),
        ("No effusion in the lung of 3 cm is possible.", "a side"),
        ("No left effusion in the lung of 3 cm is possible.", "a side"),
        ("No effusion in the left lung of 3 cm is probable.", "a hedge"),
        ("No effusion in the left lung of 3 cm is possible now.", "more than the text"),
    ],
)
def test_a_step_that_drops_or_changes_what_is_said_is_refused_and_the_message_repeats_nothing(step, problem):
    fault = place("No effusion in the left lung of 3 cm is possible.", step)
    assert isinstance(fault, ReplyFault)
    assert problem in fault.complaint
    assert "effusion" not in fault.complaint


def test_the_same_words_twice_are_two_steps_at_two_places():
    units = place("It grows. It grows.", "It grows.", "It grows.")
    assert [unit.start for unit in units] == [0, 10]
    assert units[0].id != units[1].id


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (["The mass is small."], "drops or changes a word"),
        (["it enhances.", "The mass is large,"], "step 1 does not keep to the text"),
        (["The mass is large,"], "omit the end"),
        ([], "at least one"),
        (["The"] * 16, "16 steps"),
        (["…"], "is empty"),
    ],
)
def test_a_cut_that_is_not_the_text_is_refused(steps, problem):
    fault = place("The mass is large, and it enhances.", *steps)
    assert isinstance(fault, ReplyFault)
    assert problem in fault.complaint
