"""Cells of tables that a spreadsheet will open."""

import unicodedata

_GUARD = "'"
_SIGNS = frozenset("=+-@|%\t\r\n")
# Characters before a sign that do not stop a spreadsheet from reading the rest as a formula.
_BEFORE = " \u00a0\u3000\ufeff\u200b\"'`"


def guard(text: str) -> str:
    """The text with a mark in front if a spreadsheet would read it as a formula; `unguard` removes the mark."""
    first = text.lstrip(_BEFORE)[:1]
    # Full-width and small forms of a sign work like the sign.
    is_formula = unicodedata.normalize("NFKC", first)[:1] in _SIGNS
    return _GUARD + text if is_formula or text.startswith(_GUARD) else text


def unguard(text: str) -> str:
    """The text without the mark."""
    rest = text[1:]
    return rest if text.startswith(_GUARD) and guard(rest) == text else text
