"""Kinds of judging in which a verdict is one word for each unit; form, reply, vote and readers' cell derive from it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, cast

import msgspec

from medthink.judge.judgement import UnitVerdict
from medthink.judge.kinds import kind
from medthink.judge.kinds.kind import Given, JudgedItem, JudgeKind, Labels, Scored, check_grounds, match_ids
from medthink.judge.scores import majority_label
from medthink.judge.units import UnitSet
from medthink.models.request import Schema
from medthink.workflow.forms import (
    TEXT,
    ReplyFault,
    ReplyForm,
    first_fault,
    form_schema,
    list_of,
    object_of,
    one_of,
    read_form,
)


class VerdictsForm(ReplyForm, Generic[Given], frozen=True):
    """One verdict for every unit."""

    verdicts: tuple[Given, ...]


class SingleLabelKind(JudgeKind[Given, Scored]):
    """A kind with one word for each unit.

    `verdict` is the type of its verdicts, whose `field` has one of the leading aspect's categories; if it also has
    `rests_on`, judges name their grounds. `column` is the readers' column for the word.
    """

    verdict: ClassVar[type[UnitVerdict]]
    field: ClassVar[str]
    column: ClassVar[str]

    @property
    def words(self) -> tuple[str, ...]:
        """The words to choose from."""
        aspect = next(one for one in self.aspects if one.name == self.leading)
        return tuple(map(str, aspect.categories))

    @property
    def has_grounds(self) -> bool:
        """Whether a verdict names its grounds."""
        return "rests_on" in self.verdict.__struct_fields__

    def items(self, units: UnitSet) -> tuple[JudgedItem, ...]:
        """Every unit."""
        (form,) = self.forms
        return tuple(JudgedItem(id=unit.id, form=form, part=unit.part, text=unit.text) for unit in units.units)

    def schema(self, call: str, units: UnitSet, rests_on: Sequence[str]) -> Schema:
        """One verdict per unit; the reason comes first, so that it is given before the word."""
        grounds = {"rests_on": list_of(one_of(rests_on))} if self.has_grounds else {}
        verdict = object_of(id=one_of(units.ids), reason=TEXT, **grounds, **{self.field: one_of(self.words)})
        return form_schema(self.name, call, verdicts=list_of(verdict))

    def read_reply(
        self, text: str, call: str, units: UnitSet, rests_on: Sequence[str]
    ) -> tuple[Given, ...] | ReplyFault:
        """One verdict per unit, each with a reason."""
        form = read_form(text, VerdictsForm[self.verdict], call)  # type: ignore[name-defined]
        matched = form if isinstance(form, ReplyFault) else match_ids(form.verdicts, units.ids)
        if isinstance(matched, ReplyFault):
            return matched
        if not self.has_grounds:
            return matched
        return first_fault(check_grounds(one, getattr(one, "rests_on"), rests_on) for one in matched) or matched  # noqa: B009

    def read_stored(self, rows: Sequence[Mapping[str, Any]]) -> tuple[Given, ...]:
        """The verdicts unchanged."""
        return cast("tuple[Given, ...]", tuple(msgspec.convert(row, self.verdict) for row in rows))

    def vote(self, ballots: Sequence[Given]) -> Given | None:
        """The majority label."""
        word = majority_label([self.word(ballot) for ballot in ballots])
        return next((ballot for ballot in ballots if self.word(ballot) == word), None)

    def word(self, verdict: Given) -> str:
        """The word of a verdict."""
        return str(getattr(verdict, self.field))

    def labels(self, verdict: Given) -> Labels:
        """The word alone."""
        return {self.leading: self.word(verdict)}

    def read_cells(self, form: str, row: Mapping[str, str]) -> Labels:  # noqa: ARG002
        """One of the words."""
        return {self.leading: kind.read_label(self.column, row.get(self.column, ""), self.words)}
