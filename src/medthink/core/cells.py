"""Cells of tables that a spreadsheet will open."""

import unicodedata

_GUARD = "'"
_SIGNS = frozenset("=+-@|%\t\r\n")
# What stands before a sign without keeping a spreadsheet from taking the rest for a formula.
_BEFORE = " \u00a0\u3000\ufeff\u200b\"'`"


def guard(text: str) -> str:
    """The text so that no spreadsheet takes it for a formula; `unguard` takes the guard off again."""
    first = text.lstrip(_BEFORE)[:1]
    # A sign's full-width or small form does what the sign does.
    is_formula = unicodedata.normalize("NFKC", first)[:1] in _SIGNS
    return _GUARD + text if is_formula or text.startswith(_GUARD) else text


def unguard(text: str) -> str:
    """The text without the guard."""
    rest = text[1:]
    return rest if text.startswith(_GUARD) and guard(rest) == text else text
