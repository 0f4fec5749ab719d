"""Steps as a model cuts them: exact pieces of the rationale, put back at their places in it."""

import re

from medthink.core.percent import as_percent
from medthink.judge.forms import Fault, SplitForm, check_steps_count
from medthink.judge.sentences import Span
from medthink.judge.units import RATIONALE, Source, Unit

# A cut may leave out numbering and connecting words, but nothing that could hold an error.
MAX_LEFT_OUT = 0.2
_SPACE = re.compile(r"\s+")
_LETTER = re.compile(r"\w")


def place_steps(form: SplitForm, source: Source) -> tuple[Unit, ...] | Fault:
    """The steps as units of the rationale, or why they are not a cut of it."""
    fault = check_steps_count(form)
    if fault is not None:
        return fault
    text = source.parts[RATIONALE]
    spans: list[Span] = []
    for number, step in enumerate(form.steps, start=1):
        span = _find(text, step, spans[-1].end if spans else 0)
        if span is None:
            return Fault("wrong_form", f"step {number} is no exact copy of the rationale after step {number - 1}")
        spans.append(span)
    share = _left_out(text, spans)
    if share > MAX_LEFT_OUT:
        return Fault("wrong_form", f"the steps leave out {as_percent(share, 0)} of the rationale")
    return tuple(source.unit(RATIONALE, span) for span in spans)


def _find(text: str, step: str, start: int) -> Span | None:
    """The first place of the step's words from `start` on; runs of space are one."""
    words = [re.escape(word) for word in _SPACE.split(step) if word]
    found = re.compile(r"\s+".join(words)).search(text, start) if words and _LETTER.search(step) else None
    return Span(*found.span()) if found else None


def _left_out(text: str, spans: list[Span]) -> float:
    total = len(_LETTER.findall(text))
    kept = sum(len(_LETTER.findall(text, span.start, span.end)) for span in spans)
    return 1 - kept / total if total else 0.0
