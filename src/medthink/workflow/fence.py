"""Text of others goes to a model as data: one line of JSON between two marks that hold a nonce.

Inside the fence every character is inert. A line break, a quote, a tag, a bracket, an invisible or direction-turning
character stands there as a JSON escape, so that no line, role mark or special token can begin in it; decoding the JSON
gives the text back unchanged. The nonce is made from the data by a digest: whoever wrote the text would have had to
know the digest of what they were writing. The same data gives the same nonce, so that a call can be found again.
"""

import json
import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

from medthink.core.digest import digest_value

# Marks that prompts, chat templates and markup are made of.
_MARKS = frozenset("<>[]{}|&`#~$%▁")
# Letters, marks and symbols that show nothing: fillers, joiners, variation selectors.
_INVISIBLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF),
)  # fmt: skip
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class Fenced(NamedTuple):
    """Data as it is put into a prompt, and the nonce of its fence."""

    nonce: str
    text: str


def fence(data: dict[str, Any], *, call: str = "") -> Fenced:
    """Put the data between marks; `call` sets two fences of the same data apart."""
    nonce = digest_value(["fence", call, data])[:32]
    return Fenced(nonce, f"BEGIN DATA {nonce}\n{inert_json(data)}\nEND DATA {nonce}")


def inert_json(data: dict[str, Any]) -> str:
    """The data as one line of JSON whose strings hold nothing but plain visible characters."""
    text = json.dumps(data, ensure_ascii=False, separators=(", ", ": "), allow_nan=False)
    return _STRING.sub(lambda string: "".join(map(_inert, string[0])), text)


@cache
def _inert(character: str) -> str:
    if not _is_risky(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k] << 8 | units[k + 1]:04x}" for k in range(0, len(units), 2))


def _is_risky(character: str) -> bool:
    code = ord(character)
    if character == " " or (character.isascii() and character.isalnum()):
        return False
    if unicodedata.category(character)[0] in "CZ" or any(low <= code <= high for low, high in _INVISIBLE):
        return True
    # Some tokenizers fold look-alikes (full-width forms, small forms) to the plain mark before they read.
    return not _MARKS.isdisjoint(unicodedata.normalize("NFKC", character))
