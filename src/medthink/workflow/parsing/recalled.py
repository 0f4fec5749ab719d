"""What a model says of a published case from memory: letters in an order, and a number."""

import re
from collections.abc import Sequence

from medthink.models.request import Reply
from medthink.workflow.outcome import Text, Unparsed
from medthink.workflow.parsing.forms import parse_text
from medthink.workflow.parsing.objects import find_object
from medthink.workflow.parsing.thinking import drop_thinking

_NUMBER = re.compile(r"\d{1,9}(?![\d,.]*\d)")
_LETTER = re.compile(r"\b[A-Z]\b")


def parse_letters(reply: Reply, letters: Sequence[str]) -> list[str] | Unparsed:
    """One letter for each option, in the order asked; a list of another length cannot be matched to the options."""
    text = drop_thinking(reply.text)
    if isinstance(text, Unparsed):
        return text
    form = find_object(text)
    said = form.get("letters") if form is not None else _LETTER.findall(text)
    if not isinstance(said, list) or not all(one in letters for one in said):
        return Unparsed("no list of the letters shown")
    return said if len(said) == len(letters) else Unparsed(f"{len(said)} letters for {len(letters)} options")


def parse_number(reply: Reply) -> int | Unparsed | None:
    """The one number that the reply names; None where it names none."""
    said = parse_text(reply, "case_number")
    if not isinstance(said, Text):
        return said
    found = {int(one) for one in _NUMBER.findall(said.text)}
    if len(found) > 1:
        return Unparsed("several numbers")
    return found.pop() if found else None
