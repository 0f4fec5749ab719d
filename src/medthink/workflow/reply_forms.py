"""The forms that models reply in when they judge or curate: schema building blocks and strict reading.

A reply counts only if it is one JSON object of the requested form and names this call. Anything else is a
`Fault`: the model is asked again, and in the end there is no reply.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

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
