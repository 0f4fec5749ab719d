"""Reading replies: total (nothing raises) and without guessing (a reply without a single answer is `Unparsed`).

Names resolve on first use: compiling the patterns takes longer than most commands.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "choice" if name == "parse_choice" else "forms"
    return getattr(import_module(f"{__name__}.{module}"), name)
