"""Texts by their words, and a phrase inside a text."""

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
# Signs that typesetting adds to plain English; none is part of a word, whichever way it is normalised.
_TYPESET = re.compile("[‘’“”–—…•·°×±≤≥≈→]")
_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)


def spell(text: str) -> bytes:
    """The words of a text, without case, punctuation or compatibility forms, and with nothing but spaces between."""
    plain = text if text.isascii() else _TYPESET.sub(" ", text)
    if plain.isascii():
        return plain.encode().translate(_ASCII)  # the same, ten times faster
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())).encode()


def contains_phrase(spelled: bytes, phrase: str) -> bool:
    """Whether the phrase's words stand in the spelled text one after the other, whole words only."""
    sought = spell(phrase).split()
    if not sought or not all(map(spelled.__contains__, sought)):
        return False
    return b" %b " % b" ".join(sought) in b" %b " % b" ".join(spelled.split())
