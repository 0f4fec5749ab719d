"""Units as a model cuts them: exact pieces of the text, put back at their places in it."""

import re

from medthink.core.percent import as_percent
from medthink.judge.forms import Fault, ReplyForm
from medthink.judge.sentences import Span
from medthink.judge.units import Source, Unit

# A cut may leave out numbering and connecting words, but nothing that could hold an error.
MAX_LEFT_OUT = 0.2
_SPACE = re.compile(r"\s+")
_LETTER = re.compile(r"\w")


class SplitForm(ReplyForm, frozen=True):
    """A text cut into steps, each in its own words."""

    steps: tuple[str, ...]


def place_steps(form: SplitForm, source: Source) -> tuple[Unit, ...] | Fault:
    """The steps as units of the text, or why they are not a cut of it."""
    fault = _check_count(form, source)
    if fault is not None:
        return fault
    ((part, text),) = source.parts.items()
    spans: list[Span] = []
    for number, step in enumerate(form.steps, start=1):
        span = _find(text, step, spans[-1].end if spans else 0)
        if span is None:
            return Fault("wrong_form", f"step {number} is not an exact copy of the text after step {number - 1}")
        spans.append(span)
    share = _left_out(text, spans)
    if share > MAX_LEFT_OUT:
        return Fault("wrong_form", f"the steps leave out {as_percent(share, 0)} of the text")
    return tuple(source.unit(part, span) for span in spans)


def _check_count(form: SplitForm, source: Source) -> Fault | None:
    if not form.steps:
        return Fault("wrong_form", "there must be at least one step")
    if len(form.steps) > source.max_units:
        return Fault("wrong_form", f"there were {len(form.steps)} steps; at most {source.max_units} are allowed")
    return None


def _find(text: str, step: str, start: int) -> Span | None:
    """The first place of the step's words from `start` on; runs of space are one."""
    words = [re.escape(word) for word in _SPACE.split(step) if word]
    found = re.compile(r"\s+".join(words)).search(text, start) if words and _LETTER.search(step) else None
    return Span(*found.span()) if found else None


def _left_out(text: str, spans: list[Span]) -> float:
    total = len(_LETTER.findall(text))
    kept = sum(len(_LETTER.findall(text, span.start, span.end)) for span in spans)
    return 1 - kept / total if total else 0.0
