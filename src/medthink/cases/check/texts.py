"""Texts by their words, a phrase inside a text, and a text without what cannot be seen."""

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
# Signs that typesetting adds to plain English; none is part of a word, whichever way it is normalised.
_TYPESET = re.compile("[‘’“”–—…•·°×±≤≥≈→]")
_NOT_WESTERN = re.compile(r"[^\x00-\x7fÀ-ÖØ-Þà-öø-ÿ]")


def _lower(byte: int) -> int:
    """A byte of a text in ASCII and accented letters, as it stands in the text's words."""
    if byte < 0x80:
        return ord(chr(byte).lower()) if chr(byte).isalnum() else ord(" ")
    return byte + 0x20 if byte < 0xA0 else byte  # the second byte of an accented letter: À is C3 80, à C3 A0


_WESTERN = bytes(map(_lower, range(256)))


def spell(text: str) -> bytes:
    """The words of a text, without case, punctuation or compatibility forms, and with nothing but spaces between."""
    plain = text if text.isascii() else _TYPESET.sub(" ", text)
    if plain.isascii() or not _NOT_WESTERN.search(plain):
        return plain.encode().translate(_WESTERN)  # the same, ten times faster
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())).encode()


def contains_phrase(spelled: bytes, phrase: str) -> bool:
    """Whether the phrase's words stand in the spelled text one after the other, whole words only."""
    sought = spell(phrase).split()
    if not sought or not all(map(spelled.__contains__, sought)):
        return False
    return b" %b " % b" ".join(sought) in b" %b " % b" ".join(spelled.split())


def plurals(phrase: str) -> tuple[str, ...]:
    """The regular plurals of a phrase's last word."""
    phrase = phrase.rstrip(" .")
    if not phrase or not phrase[-1].isalpha():
        return ()
    if phrase.endswith("is"):
        return (phrase[:-2] + "es",)
    if phrase.endswith("oma"):
        return (phrase + "s", phrase + "ta")
    if phrase.endswith("y") and phrase[-2:-1] not in tuple("aeiou"):
        return (phrase[:-1] + "ies",)
    return (phrase + "es" if phrase.endswith(("s", "x", "ch", "sh")) else phrase + "s",)


def bare(text: str) -> str:
    """The text without case, invisible signs, repeated spaces or a final dot: what a reader takes to be the same."""
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", text)
        text = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
    return " ".join(text.casefold().split()).rstrip(" .")
