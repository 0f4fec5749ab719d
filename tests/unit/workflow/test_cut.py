"""The cut of a text into units keeps what each says: measured on paragraphs marked by hand, and example by example."""

import re
from itertools import pairwise

import pytest

from cut_oracle import changed, overlaps, read_paragraphs
from medthink.judge.segmentation import SplitForm, align_steps
from medthink.judge.units import UnitSource
from medthink.workflow.carried import Piece, carry
from medthink.workflow.clauses import may_cut, split_clauses
from medthink.workflow.sentences import Span, split_sentences

PARAGRAPHS = read_paragraphs()
HALVES = {"seen while the rules were written": PARAGRAPHS[::2], "kept back": PARAGRAPHS[1::2]}


def cut(text: str) -> list[Piece]:
    return carry(text, split_clauses(text))


def shown(text: str) -> list[str]:
    return [one.shown(text) for one in cut(text)]


def source(text: str) -> UnitSource:
    return UnitSource(run="r", case=1, sample=0, what="steps", parts={"rationale": text}, max_units=500)


def cut_by_model(text: str, *steps: str) -> list[str]:
    units = align_steps(SplitForm("call", steps), source(text))
    assert isinstance(units, tuple), units
    return [unit.text for unit in units]


def cut_wherever_allowed(text: str) -> list[Span]:
    """What is left of the worst cut that a model could propose: a step for every word."""
    sentences = split_sentences(text)
    words = [word.start() for word in re.finditer(r"\S+", text)]
    places = [place for place in words if may_cut(text, sentences, place)]
    return [Span(start, end) for start, end in pairwise([*places, len(text)])]


@pytest.mark.parametrize("half", HALVES)
def test_the_cut_changes_the_meaning_of_at_most_one_unit_in_a_hundred(half: str) -> None:
    cuts = [(one, cut(one.text)) for one in HALVES[half]]
    wrong = [text for one, statements in cuts for text in changed(one, statements)]
    assert len(wrong) <= 0.01 * sum(len(statements) for _, statements in cuts), wrong


def test_the_paragraphs_are_many_and_the_cut_is_not_safe_by_cutting_nothing() -> None:
    assert len(PARAGRAPHS) >= 200
    assert len({one.text for one in PARAGRAPHS}) == len(PARAGRAPHS)
    marked = sum(len(one.units) for one in PARAGRAPHS)
    assert marked >= 600
    assert sum(len(cut(one.text)) for one in PARAGRAPHS) >= 0.8 * marked


def test_the_oracle_finds_units_that_lost_or_gained_what_governs_them_or_were_cut_through() -> None:
    paragraph = PARAGRAPHS[2]
    assert paragraph.text == "No sign of:\n- mass\n- effusion\n- fracture"
    assert changed(paragraph, cut(paragraph.text)) == []
    bare = [Piece(span.start, span.end) for span in split_sentences(paragraph.text)[1:]]
    assert changed(paragraph, bare) == ["mass", "effusion", "fracture"]
    plain = PARAGRAPHS[0]
    assert changed(plain, [Piece(0, 10), Piece(11, 44)]) == ["The CT sho", "s a 4 cm mass in the left kidney."]
    mixed = next(one for one in PARAGRAPHS if one.text.startswith("No:"))
    place = mixed.text.index("cough")
    assert changed(mixed, [Piece(place, place + 5, "No:")]) == ["[No:] cough"]


@pytest.mark.parametrize("half", HALVES)
def test_no_cut_that_a_model_proposes_parts_words_from_what_governs_them(half: str) -> None:
    governing = re.compile(
        r"\b(no|not|none|nobody|neither|never|without|absen\w+|unlikely|cannot|if|unless|only|all|most|more|less|may|might"
        r"|could|would|possibl[ey]|probably|likely|excluded?|ruled|doubt|denies|rather|instead)\b",
        re.IGNORECASE,
    )
    for paragraph in HALVES[half]:
        pieces = cut_wherever_allowed(paragraph.text)
        for unit in paragraph.units:
            touched = [one for one in pieces if overlaps(paragraph.text, unit, one)]
            if governing.search(paragraph.text[unit.start : unit.end]):
                assert len(touched) == 1, [paragraph.text[one.start : one.end] for one in touched]


@pytest.mark.parametrize(
    "steps",
    [
        ["No", "pleural effusion is seen."],
        ["The lesion does not", "enhance."],
        ["The absence of", "fat excludes lipoma."],
        ["It is unlikely", "that this is B."],
        ["If there is fat,", "this is an angiomyolipoma."],
        ["Both lungs", "are clear."],
        ["The mass is larger", "than the kidney."],
        ["The wall is thin", "in most places."],
        ["The mass", "enhances."],
        ["The mass contains fat", "or calcification."],
    ],
)
def test_a_models_cut_between_a_word_and_what_it_governs_is_not_made(steps: list[str]) -> None:
    assert cut_by_model(" ".join(steps), *steps) == [" ".join(steps)]


@pytest.mark.parametrize(
    "steps",
    [
        ["The mass is large,", "and it enhances."],
        ["MRI shows a mass in the cerebellum,", "with a cyst next to it."],
        ["There is no effusion, ", "and the heart is normal in size."],
        ["No effusion.", "The heart is large."],
    ],
)
def test_a_models_cut_between_claims_that_stand_alone_is_made(steps: list[str]) -> None:
    assert cut_by_model(" ".join(step.strip() for step in steps), *steps) == [step.strip() for step in steps]


def test_a_models_items_carry_their_heading_too() -> None:
    text = "No sign of:\n- mass\n- effusion"
    assert cut_by_model(text, "No sign of: mass", "effusion") == ["No sign of:\n- mass", "[No sign of:] - effusion"]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("No sign of:\n- mass\n- effusion", ["[No sign of:] mass", "[No sign of:] effusion"]),
        ("The following are absent:\n1. Dural tail", ["[The following are absent:] Dural tail"]),
        ("> 5 cm mass", ["> 5 cm mass"]),
        ("- 80 HU on unenhanced CT", ["- 80 HU on unenhanced CT"]),
        ("Effusion? No. 3 nodules are seen", ["Effusion? No.", "3 nodules are seen"]),
        ("The mass is solid.It enhances.", ["The mass is solid.", "It enhances."]),
        ("Findings: ▪ no effusion ▪ a mass", ["[Findings:] no effusion", "[Findings:] a mass"]),
        ("| Sign | Absent |\n|---|---|\n| halo | x |", ["[Sign | Absent] | halo | x |"]),
        ("Z.n. Operation of the hip. It is stable.", ["Z.n. Operation of the hip.", "It is stable."]),
        ("No evidence of: 1. Mass. 2. Bleeding.", ["No evidence of: 1. Mass.", "[No evidence of:] Bleeding."]),
        ("Not seen:\n- in the liver:\n  - cysts\n- nodes", ["[Not seen: in the liver:] cysts", "[Not seen:] nodes"]),
        ("Absent:\n- fat\n\nThe mass enhances.", ["[Absent:] fat", "The mass enhances."]),
        ("Conclusion:\nThe mass is a lipoma.", ["Conclusion:\nThe mass is a lipoma."]),
        ("- a mass\n- no effusion", ["a mass", "no effusion"]),
    ],
)
def test_units_read_as_they_do_in_their_text(text: str, units: list[str]) -> None:
    assert shown(text) == units


@pytest.mark.parametrize(
    "sentence",
    [
        "It would be wrong to say that the lesion is solid; that it enhances; that it has grown over two years.",
        "I do not think that the mass is solid in any of its parts, and that the wall is thick, and that it enhances.",
        "If it were an abscess, it would show restricted diffusion in its centre, and the wall would enhance.",
        "There is no evidence of fracture; dislocation; or effusion on any of the images that were taken at that time.",
        "Unless there is fat; the diagnosis is a renal cell carcinoma in a patient of this age and with this history.",
    ],
)
def test_a_sentence_stays_whole_where_scope_runs_over_its_clauses(sentence: str) -> None:
    assert shown(sentence) == [sentence]
