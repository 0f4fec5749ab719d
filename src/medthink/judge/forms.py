"""The forms that a judge replies in: their schemas, and their strict reading.

A reply is taken only when it is one JSON object of the form asked for, names this very call, and has exactly one
verdict for every unit. Anything else is a `Fault`: the judge is asked again, and in the end the units are unjudged.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from medthink.judge.rubric import DIMENSIONS, ERROR_TYPES, MAX_STEPS, SENTENCE_LABELS, SUPPORTS
from medthink.judge.verdicts import EducationVerdict, SentenceVerdict, StatementVerdict, StepVerdict
from medthink.models.request import Schema
from medthink.workflow.outcome import Unparsed
from medthink.workflow.parsing.objects import read_object, unfence
from medthink.workflow.parsing.thinking import drop_thinking

FaultKind = Literal["not_json", "wrong_form", "wrong_call", "wrong_ids", "contradictory"]


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a reply, in words that hold nothing the reply said."""

    kind: FaultKind
    complaint: str


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    call: str


class SplitForm(_Form, frozen=True):
    """A rationale cut into steps, each in its own words."""

    steps: tuple[str, ...]


class StepsForm(_Form, frozen=True):
    """One verdict a step."""

    verdicts: tuple[StepVerdict, ...]


class DiscussionForm(_Form, frozen=True):
    """One verdict a sentence, and one score a dimension."""

    verdicts: tuple[SentenceVerdict, ...]
    education: tuple[EducationVerdict, ...]


class FindingsForm(_Form, frozen=True):
    """One verdict a statement."""

    verdicts: tuple[StatementVerdict, ...]


Form = TypeVar("Form", bound=_Form)
Verdict = TypeVar("Verdict", StepVerdict, SentenceVerdict, StatementVerdict)

_TEXT = {"type": "string"}


def split_schema(call: str) -> Schema:
    """Steps in the rationale's own words."""
    return Schema("split", _object(call=_one_of([call]), steps=_list(_TEXT)))


def steps_schema(call: str, ids: Sequence[str], rests_on: Sequence[str]) -> Schema:
    """One verdict a step; the reason stands first, so that it is given before the verdict."""
    verdict = _object(
        id=_one_of(ids),
        reason=_TEXT,
        rests_on=_list(_one_of(rests_on)),
        factual=_one_of(SUPPORTS),
        critical={"type": "boolean"},
        error_types=_list(_one_of(ERROR_TYPES)),
    )
    return Schema("steps", _object(call=_one_of([call]), verdicts=_list(verdict)))


def discussion_schema(call: str, ids: Sequence[str]) -> Schema:
    """One verdict a sentence, and one score a dimension."""
    verdict = _object(id=_one_of(ids), reason=_TEXT, label=_one_of(SENTENCE_LABELS))
    education = _object(dimension=_one_of(DIMENSIONS), reason=_TEXT, score={"type": "integer"})
    return Schema("discussion", _object(call=_one_of([call]), verdicts=_list(verdict), education=_list(education)))


def findings_schema(call: str, ids: Sequence[str], rests_on: Sequence[str]) -> Schema:
    """One verdict a statement."""
    verdict = _object(id=_one_of(ids), reason=_TEXT, rests_on=_list(_one_of(rests_on)), support=_one_of(SUPPORTS))
    return Schema("findings", _object(call=_one_of([call]), verdicts=_list(verdict)))


def read_form(text: str, form: type[Form], call: str) -> Form | Fault:
    """The reply as a form of this call, or what is wrong with it."""
    rest = drop_thinking(text)
    value = None if isinstance(rest, Unparsed) else read_object(unfence(rest))
    if value is None:
        return Fault("not_json", "the reply was not one JSON object and nothing else")
    try:
        read = msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        return Fault("wrong_form", f"the reply did not keep to the form: {_in_our_words(str(error))}")
    if read.call != call:
        return Fault("wrong_call", 'the "call" of the reply was not the one given')
    return read


def match_ids(verdicts: Iterable[Verdict], ids: Sequence[str]) -> tuple[Verdict, ...] | Fault:
    """The verdicts in the order of the units; each unit needs exactly one."""
    by_id: dict[str, Verdict] = {}
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


def check_step(verdict: StepVerdict, rests_on: Sequence[str]) -> Fault | None:
    """Why a step's verdict contradicts itself or points nowhere; None when it does not."""
    if verdict.factual == "supported" and verdict.error_types:
        return Fault("contradictory", f"{verdict.id} is supported and has error types")
    if verdict.factual == "contradicted" and not verdict.error_types:
        return Fault("contradictory", f"{verdict.id} is contradicted and has no error type")
    if len(set(verdict.error_types)) < len(verdict.error_types):
        return Fault("wrong_form", f"{verdict.id} names an error type twice")
    return check_grounds(verdict, rests_on)


def check_grounds(verdict: StepVerdict | StatementVerdict, rests_on: Sequence[str]) -> Fault | None:
    """Why a verdict's reason or grounds will not do; None when they will."""
    if not verdict.reason.strip():
        return Fault("wrong_form", f"{verdict.id} has no reason")
    if not verdict.rests_on or set(verdict.rests_on) - set(rests_on):
        return Fault("wrong_form", f'{verdict.id} must rest on one or more of the names given for "rests_on"')
    return None


def match_dimensions(scores: Sequence[EducationVerdict]) -> tuple[EducationVerdict, ...] | Fault:
    """The scores in the order of the dimensions; each needs exactly one."""
    if sorted(score.dimension for score in scores) != sorted(DIMENSIONS):
        return Fault("wrong_ids", "each of the five dimensions needs exactly one score")
    return tuple(sorted(scores, key=lambda score: DIMENSIONS.index(score.dimension)))


def check_steps_count(form: SplitForm) -> Fault | None:
    """Why so many steps will not do; None when they will."""
    if not form.steps:
        return Fault("wrong_form", "there must be at least one step")
    if len(form.steps) > MAX_STEPS:
        return Fault("wrong_form", f"there were {len(form.steps)} steps; at most {MAX_STEPS} are allowed")
    return None


def _in_our_words(message: str) -> str:
    """The validator's message, unless it repeats what the reply said: that is not ours to send on."""
    if message.startswith(("Expected ", "Object missing ")):
        return message
    place = message.rfind(" - at `$")
    problem = (
        "an unknown field" if message.startswith("Object contains") else "a value that is not one of those allowed"
    )
    return problem + (message[place:] if place >= 0 else "")


def _one_of(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
