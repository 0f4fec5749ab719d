"""The forms that a judge replies in: schema building blocks and strict reading.

A reply counts only if it is one JSON object of the form asked for, names this very call, and has exactly one verdict
for every unit. Anything else is a `Fault`: the judge is asked again, and in the end the units are unjudged.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from medthink.judge.verdicts import UnitVerdict
from medthink.models.request import Schema
from medthink.workflow.outcome import Unparsed
from medthink.workflow.parsing.objects import read_object, unfence
from medthink.workflow.parsing.thinking import drop_thinking

FaultKind = Literal["not_json", "wrong_form", "wrong_call", "wrong_ids", "contradictory"]

TEXT: dict[str, Any] = {"type": "string"}


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a reply, in words that repeat nothing the reply said."""

    kind: FaultKind
    complaint: str


class ReplyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every reply holds: the code of its call."""

    call: str


Form = TypeVar("Form", bound=ReplyForm)
Given = TypeVar("Given", bound=UnitVerdict)


def form_schema(name: str, call: str, **properties: dict[str, Any]) -> Schema:
    """The schema of a reply to this call."""
    return Schema(name, object_of(call=one_of([call]), **properties))


def one_of(words: Sequence[str]) -> dict[str, Any]:
    """One of these words."""
    return {"type": "string", "enum": list(words)}


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    """A list of these."""
    return {"type": "array", "items": items}


def object_of(**properties: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_form(text: str, form: type[Form], call: str) -> Form | Fault:
    """The reply as a form of this call, or what is wrong with it."""
    value = _find_object(text)
    if value is None:
        return Fault("not_json", "the reply was not one JSON object and nothing else")
    try:
        read = msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        return Fault("wrong_form", f"the reply did not keep to the form: {_in_our_words(str(error))}")
    if read.call != call:
        return Fault("wrong_call", 'the "call" of the reply was not the one given')
    return read


def _find_object(text: str) -> dict[str, Any] | None:
    """The reply as JSON, else what is left of it without its thinking: a text in the JSON may quote a thinking mark."""
    value = read_object(unfence(text))
    if value is not None:
        return value
    rest = drop_thinking(text)
    return None if isinstance(rest, Unparsed) else read_object(unfence(rest))


def match_ids(verdicts: Iterable[Given], ids: Sequence[str]) -> tuple[Given, ...] | Fault:
    """The verdicts in the order of the units; each unit needs exactly one."""
    by_id: dict[str, Given] = {}
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        by_id[verdict.id] = verdict
        counts[verdict.id] += 1
    missing = [one for one in ids if one not in counts]
    twice = [one for one in ids if counts[one] > 1]
    strange = len(counts.keys() - set(ids))
    problems = [f"no verdict for {', '.join(missing)}"] if missing else []
    problems += [f"more than one verdict for {', '.join(twice)}"] if twice else []
    problems += [f"{strange} verdicts for ids that were not given"] if strange else []
    return Fault("wrong_ids", "; ".join(problems)) if problems else tuple(by_id[one] for one in ids)


def check_grounds(verdict: UnitVerdict, rests_on: Sequence[str], allowed: Sequence[str]) -> Fault | None:
    """Why a verdict's reason or grounds are not acceptable; None if they are."""
    if not verdict.reason.strip():
        return Fault("wrong_form", f"{verdict.id} has no reason")
    if not rests_on or set(rests_on) - set(allowed):
        return Fault("wrong_form", f'{verdict.id} must rest on one or more of the names given for "rests_on"')
    return None


def first_fault(faults: Iterable[Fault | None]) -> Fault | None:
    """The first fault there is."""
    return next((fault for fault in faults if fault is not None), None)


def _in_our_words(message: str) -> str:
    """The validator's message, unless it repeats what the reply said, which must not be sent back."""
    if message.startswith(("Expected ", "Object missing ")):
        return message
    place = message.rfind(" - at `$")
    problem = (
        "an unknown field" if message.startswith("Object contains") else "a value that is not one of those allowed"
    )
    return problem + (message[place:] if place >= 0 else "")
