"""What holds for every reply: nothing raises, no letter is invented, letters are only names."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medthink.models.request import Reply
from medthink.workflow.ask import Choice, Unparsed
from medthink.workflow.parsing import parse_answer, parse_choice, parse_sections, parse_steps, parse_text
from scripted_case import make_question

NAMES = ("Sarcoidosis", "Tuberculosis", "Lymphoma", "Silicosis", "Metastases")
OPTIONS = dict(zip("ABCDE", NAMES, strict=True))
QUESTION = make_question(2)

# Pieces that parsers trip over, joined at random.
PIECES = st.sampled_from(
    (
    "A", "b", "(C)", "**D**", "E.", "Answer", "answer:", "is", "not", "or", "Final answer:", "final", "{", "}",
    '"answer":', '"B"', "'", '"', "```", "```json", "<think>", "</think>", "<answer>", "</answer>", "\\boxed{",
    "\n", "\n\n", " ", ",", ":", "Sarcoidosis", "lymphoma", "the", "correct", "option", "I choose", "therefore",
    "wait", "答案", "是", "正解は", "für", "İ", "\u2028", "\x00", "😀", "ﷺ", "A or B", "B is correct", "if",
    "E. coli", "[", "]", "diagnosis", "\\", "1.",
    )
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=40).map("".join) | st.text(max_size=200)
# Half a character: no UTF-8 can hold it, yet a string in memory can.
SURROGATES = st.sampled_from(["Answer: B \ud83d", '{"explanation": "\ud83d", "answer": "B"}', "\udc00"])
FIELDS = st.sampled_from(["answer", "explanation", "findings", "summary"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=8,
)
# One statement of a letter in each manner; {x} is the letter, {name} its option's text.
MANNERS = (
    "{x}", "({x})", "**{x}.** {name}", "{x}) {name}", "Answer: {x}", "The correct answer is option {x}.",
    "Option {x} is correct.", "I choose ({x}).", "Final answer: {x}", "\\boxed{{{x}}}", "<answer>{x}</answer>",
    '{{"answer": "{x}"}}', "Die Antwort ist {x}.", "La respuesta correcta es la {x}.", "答案是{x}。",
    "正解は{x}です。", "The most likely diagnosis is {name}.", "{name}", "<think>hm</think>Answer: {x}",
    '{{"explanation": "because", "answer": "{x}"}}', "Therefore, {x}.", "No cavity.\n\n{x}. {name}",
    "Definitely {x}.", "{x} it is", "Final: {x}",
)  # fmt: skip
HEDGES = (
    "Answer: {x} or {y}", "Answer: {x}/{y}", "Answer: {x}. Answer: {y}.", "The answer is either {x} or {y}.",
    "Answer: {x} and {y}", "Final answer: {x}\nFinal answer: {y}", "\\boxed{{{x}}} \\boxed{{{y}}}",
    '{{"answer": "{x}"}} {{"answer": "{y}"}}', "{x}. {other}", "The answer is {x}. Wait, it is {y}.",
    "Antwort: {x} oder {y}", "答案：{x}或{y}", "Definitely {x} or {y}.", "It is {x}.\nIt is {y}.", "{x}: {y}",
)  # fmt: skip


def pairs(draw_from: str = "ABCDE") -> st.SearchStrategy[tuple[str, str]]:
    return st.permutations(draw_from).map(lambda order: (order[0], order[1]))


@given(text=TEXTS | SURROGATES)
@settings(max_examples=500)
def test_nothing_raises_and_no_letter_is_invented(text: str) -> None:
    reply = Reply(text=text)
    choice = parse_answer(reply, OPTIONS)
    assert isinstance(choice, Unparsed) or (choice.letter in OPTIONS and choice.text == OPTIONS[choice.letter])
    free = parse_answer(reply, {})
    assert isinstance(free, Unparsed) or (free.letter is None and free.text.strip())
    for parsed in (
        parse_text(reply, "findings"),
        parse_steps(reply, QUESTION.options, len(QUESTION.images)),
        parse_sections(reply),
    ):
        assert parsed is not None


@given(value=VALUES)
def test_any_json_is_read_or_refused(value: object) -> None:
    reply = Reply(text=json.dumps(value), json=value)
    choice = parse_answer(reply, OPTIONS)
    assert isinstance(choice, Unparsed) or choice.letter in OPTIONS
    parse_text(reply, "findings")
    parse_steps(reply, QUESTION.options, len(QUESTION.images))
    parse_sections(reply)


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("letter", "ABCDE")
def test_every_letter_is_read_in_every_manner(manner: str, letter: str) -> None:
    parsed = parse_answer(Reply(text=manner.format(x=letter, name=OPTIONS[letter])), OPTIONS)
    assert isinstance(parsed, Choice), parsed
    assert parsed.letter == letter


@pytest.mark.parametrize("hedge", HEDGES)
@given(pair=pairs())
@settings(max_examples=20)
def test_two_answers_are_none(hedge: str, pair: tuple[str, str]) -> None:
    x, y = pair
    parsed = parse_answer(Reply(text=hedge.format(x=x, y=y, other=OPTIONS[y])), OPTIONS)
    assert isinstance(parsed, Unparsed), parsed


@given(manner=st.sampled_from(MANNERS + HEDGES), pair=pairs(), order=st.permutations("ABCDE"))
@settings(max_examples=300)
def test_relabelling_the_options_relabels_the_answer(manner: str, pair: tuple[str, str], order: list[str]) -> None:
    new = dict(zip("ABCDE", order, strict=True))
    relabelled = {new[letter]: text for letter, text in OPTIONS.items()}
    x, y = pair
    here = parse_answer(Reply(text=manner.format(x=x, y=y, name=OPTIONS[x], other=OPTIONS[y])), OPTIONS)
    there = parse_answer(Reply(text=manner.format(x=new[x], y=new[y], name=OPTIONS[x], other=OPTIONS[y])), relabelled)
    if isinstance(here, Unparsed):
        assert isinstance(there, Unparsed)
    else:
        assert isinstance(there, Choice)
        assert (there.letter, there.text, there.mode) == (new[here.letter], here.text, here.mode)


@given(explanation=TEXTS, letter=st.sampled_from("ABCDE"))
@settings(max_examples=200)
def test_what_is_read_strictly_reads_the_same_leniently(explanation: str, letter: str) -> None:
    text = json.dumps({"explanation": explanation, "answer": letter})
    strict = parse_answer(Reply(text=text), OPTIONS)
    lenient = parse_choice(text, OPTIONS)
    assert isinstance(strict, Choice)
    assert strict == Choice(letter, OPTIONS[letter], explanation, "strict")
    assert isinstance(lenient, Choice)
    assert (lenient.letter, lenient.mode) == (letter, "lenient")


@given(manner=st.sampled_from(MANNERS), letter=st.sampled_from("ABCDE"), thought=st.text(max_size=50))
def test_thinking_changes_nothing(manner: str, letter: str, thought: str) -> None:
    said = manner.format(x=letter, name=OPTIONS[letter])
    thought = re.sub(r"[<>\[\]◁▷]", "", thought)
    parsed = parse_answer(Reply(text=f"<think>Answer: A? {thought}</think>\n{said}"), OPTIONS)
    assert isinstance(parsed, Choice)
    assert parsed.letter == letter


@pytest.mark.parametrize(
    "unit", ["answer: ", '{"a":', '"answer": "', "(", "``` ", "B, ", "A is correct. ", "Sarcoidosis, "]
)
def test_a_megabyte_is_read(unit: str) -> None:
    """Quadratic patterns would take hours here; the test's own time limit is what fails then."""
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    parsed = parse_answer(Reply(text=text), OPTIONS)
    assert isinstance(parsed, Unparsed | Choice)
