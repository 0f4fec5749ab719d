"""Aliases: the other names of each diagnosis, collected once and used by every later stage.

Rules know a small table, and the names that a diagnosis contains (in brackets, next to a slash). A model proposes
more, and is then asked about each proposal separately: only a name it confirms as the same is kept.
"""

import asyncio
from typing import Any, Literal

from msgspec import Struct

from medthink.core.digest import digest_file
from medthink.core.errors import DataError
from medthink.core.jsonio import read_toml
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import StageResult, pass_case
from medthink.curate.draft import Draft
from medthink.curate.names import distinct_names, known_aliases, name_key, split_differential
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import AliasSettings
from medthink.curate.stage import Stage
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import TEXT, ReplyForm, list_of, object_of, one_of

_MOST_NAMES, _LONGEST = 20, 120
_RELATIONS = ("same", "broader", "narrower", "different", "unsure")


class AliasForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """Names that a model proposes."""

    names: list[str]


class NumberedRelation(Struct, frozen=True, forbid_unknown_fields=True):
    """The relation of one of the names to the diagnosis."""

    number: int
    relation: Literal["same", "broader", "narrower", "different", "unsure"]


class AliasCheckForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """A model's verdict on proposed names."""

    relations: list[NumberedRelation]


class AliasStage(Stage[AliasSettings]):
    """One list of names for each diagnosis."""

    name = "aliases"

    def survey(self, drafts: Any) -> None:  # noqa: ARG002
        """Read the file of known names."""
        self._book = self._read_book()

    def begin_pass(self) -> None:
        """Ask for every name again; answers are in the ledger."""
        self._asked: dict[str, asyncio.Task[tuple[str, ...]]] = {}

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:  # noqa: ARG002
        """The draft with the names of its diagnoses."""
        options = split_differential(draft.notes.differential, draft.gold) or list(draft.case.question.options.values())
        wanted = [draft.gold] if self.settings.names_of == "gold" else distinct_names([draft.gold, *options])
        found = {}
        for name in wanted:
            others = [other for other in options if name_key(other) != name_key(name)]
            names = [*self._book.get(name_key(name), ()), *known_aliases(name)]
            if ask is not None and name == draft.gold:
                names += await self._ask_once(name, ask, draft.id)
            if kept := distinct_names(names, apart_from=[name, *others]):
                found[name] = kept
        return pass_case(
            draft.with_notes(aliases=found), reason="named" if found else "no-names", by=ask.by if ask else "rule"
        )

    async def _ask_once(self, name: str, ask: StageModel, case_id: int) -> tuple[str, ...]:
        """The model's names for a diagnosis, asked for by the first case that needs them."""
        key = name_key(name)
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(_ask_model(name, ask, case_id))
        return await self._asked[key]

    def not_covered(self) -> tuple[str, ...]:
        """Synonyms, if no model is asked."""
        return (
            () if self.settings.has_model else ("synonyms and foreign names beyond a small table: no model was asked",)
        )

    def inputs(self) -> Any:
        """The current file of known names."""
        return digest_file(self.context.path(self.settings.alias_file)) if self.settings.alias_file else ""

    def _read_book(self) -> dict[str, tuple[str, ...]]:
        if not self.settings.alias_file:
            return {}
        path = self.context.path(self.settings.alias_file)
        book = read_toml(path, remedy='write "diagnosis" = ["name", "name"]')
        for name, names in book.items():
            if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
                raise DataError("not a list of names", file=path, field=name, remedy='write ["name", "name"]')
        return {name_key(name): tuple(names) for name, names in book.items()}


async def _ask_model(name: str, ask: StageModel, case_id: int) -> tuple[str, ...]:
    """The names that the model proposes, and then confirms."""
    known = list(known_aliases(name))
    prompt = curate_prompt(
        "aliases", case_id, data={"diagnosis": name}, form={"names": list_of(TEXT)}, by_rules={"names": known}
    )
    proposed = (await ask(prompt, AliasForm, case_id)).names
    names = distinct_names((one.strip() for one in proposed if one.strip()), apart_from=[name])
    names = tuple(one for one in names if len(one) <= _LONGEST)[:_MOST_NAMES]
    if not names:
        return ()
    return await _check(name, names, ask, case_id)


async def _check(name: str, names: tuple[str, ...], ask: StageModel, case_id: int) -> tuple[str, ...]:
    numbered = [{"number": number, "name": one} for number, one in enumerate(names, start=1)]
    relation = object_of(number={"type": "integer"}, relation=one_of(_RELATIONS))
    prompt = curate_prompt(
        "alias_check",
        case_id,
        data={"diagnosis": name, "names": numbered},
        form={"relations": list_of(relation)},
        by_rules={"relations": [{"number": one["number"], "relation": "same"} for one in numbered]},
    )
    relations = (await ask(prompt, AliasCheckForm, case_id)).relations
    found = {one.number: one.relation for one in relations}
    if sorted(found) != list(range(1, len(names) + 1)) or len(relations) != len(names):
        raise Unanswered("unparsed", "the reply must cover each name exactly once")
    return tuple(one for number, one in enumerate(names, start=1) if found[number] == "same")


STAGE = AliasStage
