"""The forms that replies are asked in: plain JSON schemas that every provider's strict mode accepts.

Reasoning comes before the letter, so that a model has reasoned before it commits.
"""

from collections.abc import Iterable
from typing import Any

from medthink.cases.sections import SECTIONS
from medthink.models.request import Schema

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def answer_schema(letters: Iterable[str]) -> Schema:
    """Reasoning, then a letter; without letters, the name of a diagnosis."""
    return _form("answer", explanation=_TEXT, answer=_answer(letters))


def findings_schema() -> Schema:
    """What one image shows."""
    return _form("findings", findings=_TEXT)


def summary_schema() -> Schema:
    """What the images show together."""
    return _form("summary", summary=_TEXT)


def twi_schema(letters: Iterable[str]) -> Schema:
    """All three steps in one reply."""
    return _form(
        "think_with_images",
        step1_per_image_findings=_TEXTS,
        step2_integrated_summary=_TEXT,
        step3_differential_reasoning=_TEXT,
        answer=_answer(letters),
    )


def discussion_schema() -> Schema:
    """The six sections of a case discussion."""
    return _form("discussion", **dict.fromkeys(SECTIONS, _TEXT))


def hidden_option_schema() -> Schema:
    """The text of an option that is hidden."""
    return _form("hidden_option", option=_TEXT)


def option_letters_schema(letters: Iterable[str]) -> Schema:
    """A letter for each option."""
    return _form("option_letters", letters={"type": "array", "items": {"type": "string", "enum": list(letters)}})


def case_number_schema() -> Schema:
    """A number, or that it is not known."""
    return _form("case_number", case_number=_TEXT)


def _answer(letters: Iterable[str]) -> dict[str, Any]:
    known = list(letters)
    return {"type": "string", "enum": known} if known else _TEXT


def _form(name: str, /, **properties: dict[str, Any]) -> Schema:
    definition = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Schema(name, definition)
