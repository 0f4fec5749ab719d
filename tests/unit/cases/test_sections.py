"""Discussions cut at their headings."""

import pytest

from medthink.cases.sections import SECTIONS, has_headings, split_discussion

FULL = """Some opening words.
Background
Moyamoya is a vasculopathy.
Clinical Perspective:
Strokes in the young.
**Imaging Perspective**
The clinical background matters here. Stenosis of the terminal ICA.
4. Clinical Significance
It changes the treatment.
## Outcome
The outcome was good.
Take Home Message, Teaching Points
1. Look at the carotid canal.
"""


def test_all_six_sections() -> None:
    split = split_discussion(FULL)
    assert tuple(split.sections) == SECTIONS
    assert split.preamble == "Some opening words."
    assert split.sections["imaging_perspective"].startswith("The clinical background matters")
    assert split.sections["teaching_points"] == "1. Look at the carotid canal."


@pytest.mark.parametrize(
    "heading",
    [
        "Take Home Message, Teaching Points",
        "Take-Home Message / Teaching Points",
        "TEACHING POINTS:",
        "Teaching point",
        "Take home messages",
        "### Take-home message",
        "**Teaching Points:**",
        "Key points -",
        "6) Take Home Message and Teaching Points",
    ],
)
def test_spellings_of_the_last_heading(heading: str) -> None:
    assert split_discussion(f"Background\nA.\n{heading}\nB.").sections == {"background": "A.", "teaching_points": "B."}


def test_headings_within_a_paragraph_need_a_colon() -> None:
    text = "Background: It is rare. Clinical perspective: Pain. Outcome: Good. The outcome is good. Outcome was fine."
    split = split_discussion(text)
    assert list(split.sections) == ["background", "clinical_perspective", "outcome"]
    assert split.sections["outcome"] == "Good. The outcome is good. Outcome was fine."


@pytest.mark.parametrize("text", ["", "No heading at all.", "Background noise is seen.", "The outcome: unknown"])
def test_no_heading_no_section(text: str) -> None:
    assert split_discussion(text).sections == {}
    assert split_discussion(text).preamble == text


def test_empty_and_repeated_headings() -> None:
    split = split_discussion("Background\n\nOutcome\nGood.\nBackground\nRare.\nBackground\nVery rare.")
    assert split.sections == {"outcome": "Good.", "background": "Rare.\nVery rare."}


def test_the_body_has_every_word_but_the_headings() -> None:
    assert split_discussion("Before.\nOutcome\nGood.\nBackground: Rare.").body == "Before.\n\nGood.\n\nRare."
    assert split_discussion("Plain words.").body == "Plain words."


def test_headings_are_told_without_cutting() -> None:
    assert has_headings(FULL) and not has_headings("Background noise is seen.")
