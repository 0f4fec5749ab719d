"""Known edits of an expert's sentence: ways to make it false, and ways to say the same in other words.

Shared by the exam of judges, the training of readers and the checks planted in reading lists. An edit takes a sentence
and returns the edited one, or None where it does not apply or might leave it true.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

from medthink.judge.edits.guards import is_claim, is_stated_in
from medthink.judge.edits.measures import change_level, change_size, change_unit
from medthink.judge.edits.opposites import (
    add_negation,
    drop_negation,
    swap_direction,
    swap_modality,
    swap_position,
    swap_side,
    swap_signal,
)
from medthink.judge.edits.plausible import References

OPTION = "wrong option"
INVENTED = "invented finding"
DELETED = "deleted finding"


class Edit(Struct, frozen=True, kw_only=True):
    """One way to make a sentence false.

    `is_counted`: it counts towards the floor, because nearly all of its sentences, checked by eye, were grammatical and
    false. `may_be_unverifiable`: if the expert does not mention the edited claim, not supporting it is right.
    """

    name: str
    apply: Callable[[str], str | None]
    is_counted: bool = True
    may_be_unverifiable: bool = False


EDITS: dict[str, Edit] = {
    edit.name: edit
    for edit in (
        Edit(name="side", apply=swap_side),
        Edit(name="negation dropped", apply=drop_negation),
        Edit(name="negation added", apply=add_negation),
        Edit(name="size", apply=change_size),
        Edit(name="unit", apply=change_unit),
        Edit(name="position", apply=swap_position),
        Edit(name="signal or margin", apply=swap_signal),
        Edit(name="direction of change", apply=swap_direction),
        Edit(name="level", apply=change_level, is_counted=False),
        Edit(name="modality", apply=swap_modality, is_counted=False, may_be_unverifiable=True),
    )
}


def is_counted(edit: str) -> bool:
    """Whether an edit counts towards the floor of an exam; deletion, the only edit for omissions, does."""
    return EDITS[edit].is_counted if edit in EDITS else edit == DELETED


def falsify(sentence: str, said: Iterable[str] = (), *, references: References | None = None) -> dict[str, str]:
    """The false versions of a sentence by edit; none may repeat `said`, what the expert says elsewhere.

    With `references`, none may say what such texts do not: it would be told false without the case.
    """
    if not is_claim(sentence):
        return {}
    others = list(said)
    versions = {name: edit.apply(sentence) for name, edit in EDITS.items()}
    return {
        name: text
        for name, text in versions.items()
        if text is not None
        and text != sentence
        and not is_stated_in(text, others)
        and (references is None or references.allow(sentence, text))
    }
