"""Reading replies: total (nothing raises) and without guessing (a reply without a single answer is `Unparsed`)."""

from medthink.workflow.parsing.choice import parse_choice
from medthink.workflow.parsing.forms import (
    parse_answer,
    parse_letters,
    parse_number,
    parse_sections,
    parse_steps,
    parse_text,
)

__all__ = [
    "parse_answer",
    "parse_choice",
    "parse_letters",
    "parse_number",
    "parse_sections",
    "parse_steps",
    "parse_text",
]
