"""Steps as a model cuts them: pieces that keep everything the text says, mapped back to their positions in it."""

import re
from collections.abc import Sequence
from itertools import pairwise

from medthink.judge.content import Token, content_tokens, name_class
from medthink.judge.units import Source, Unit
from medthink.workflow.forms import Fault, ReplyForm
from medthink.workflow.sentences import Span

_SENTENCE_END = re.compile(r"[.!?;:]+[\"'”’)\]]*(?=\s|$)|[\r\n]+")
_COMMA = re.compile(r",[\"'”’)\]]*(?=\s)")
_CLOSERS = re.compile(r"[^\w\s(\[«“‘]*")


class SplitForm(ReplyForm, frozen=True):
    """A text cut into steps, each in its own words."""

    steps: tuple[str, ...]


def place_steps(form: SplitForm, source: Source) -> tuple[Unit, ...] | Fault:
    """The steps as units of the text, or why they are not a cut of it.

    Steps must repeat the text's content words in order, so none can drop a negation, a side, a number or a qualifier.
    What a unit shows is always the original text.
    """
    fault = _check_count(form, source)
    if fault is not None:
        return fault
    ((part, text),) = source.parts.items()
    tokens = content_tokens(text)
    ends: list[int] = []
    for number, step in enumerate(form.steps, start=1):
        place = ends[-1] if ends else 0
        words = [token.word for token in content_tokens(step)]
        fault = _compare(words, tokens[place:], number)
        if fault is not None:
            return fault
        ends.append(place + len(words))
    if ends[-1] < len(tokens):
        kind = name_class(tokens[ends[-1]].word)
        return Fault("wrong_form", f"the steps leave out the end of the text, first {kind}")
    return tuple(source.unit(part, span) for span in _spans(text, tokens, ends))


def _check_count(form: SplitForm, source: Source) -> Fault | None:
    if not form.steps:
        return Fault("wrong_form", "there must be at least one step")
    if len(form.steps) > source.max_units:
        return Fault("wrong_form", f"there were {len(form.steps)} steps; at most {source.max_units} are allowed")
    return None


def _compare(words: Sequence[str], tokens: Sequence[Token], number: int) -> Fault | None:
    """Why the step does not say what the text says from here on; None if it does."""
    if not words:
        return Fault("wrong_form", f"step {number} says nothing")
    for word, token in zip(words, tokens, strict=False):
        if word != token.word:
            return Fault(
                "wrong_form", f"step {number} does not keep to the text: it drops or changes {_kind(word, token)}"
            )
    if len(words) > len(tokens):
        return Fault("wrong_form", f"step {number} says more than the text")
    return None


def _kind(word: str, token: Token) -> str:
    kinds = [name_class(token.word), name_class(word)]
    return next((kind for kind in kinds if kind != "a word"), "a word")


def _spans(text: str, tokens: Sequence[Token], ends: Sequence[int]) -> list[Span]:
    """The pieces of the text that the steps cover, together all of it."""
    cuts = [_cut(text, tokens[end - 1].end, tokens[end].start) for end in ends[:-1]]
    bounds = [0, *cuts, len(text)]
    return [_trim(text, start, end) for start, end in pairwise(bounds)]


def _cut(text: str, start: int, end: int) -> int:
    """Where to cut between two words: after the end of a sentence, else a comma, else at the first word's end."""
    found = _SENTENCE_END.search(text, start, end) or _COMMA.search(text, start, end)
    if found:
        return found.end()
    closers = _CLOSERS.match(text, start, end)
    return closers.end() if closers else start


def _trim(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return Span(start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip())))
