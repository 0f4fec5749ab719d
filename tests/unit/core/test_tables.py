import pytest

from medthink.core.tables import escape_formula, unescape_formula

FORMULAS = [
    f"{before}{sign}{rest}"
    for before in ("", " ", "\t", "\r", "\n", '"', "'", "\u3000", "\ufeff", ' "')
    for sign in "=+-@＝＋－＠﹦﹢﹣﹫"
    for rest in ("1+1", "HYPERLINK(0)", "cmd|' /C calc'!A0")
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_starts_a_formula(text):
    assert escape_formula(text) == f"'{text}"
    assert unescape_formula(escape_formula(text)) == text


@pytest.mark.parametrize("text", ["gpt-5", "a=b", "5 - 3", "–", "−1", "", "openai/x", "0.5"])
def test_plain_text_stays(text):
    assert escape_formula(text) == text


@pytest.mark.parametrize("text", ["\tx", "\rx", "\nx"])
def test_a_cell_cannot_begin_with_a_break(text):
    assert escape_formula(text).startswith("'")
