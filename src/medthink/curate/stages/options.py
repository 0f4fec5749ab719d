"""Options: the right diagnosis and its distractors, from the experts' differential diagnosis.

The list is split with the right diagnosis protected. A match is certain only if the names are equal, spelling or
brackets aside; otherwise it is proposed, and a person or the model confirms it. Distractors that mean the same, or are
broader terms for it, are left out. `balance` chooses the five.
"""

from collections import Counter
from functools import cached_property
from typing import Literal

from msgspec import Struct

from medthink.core.errors import DataError
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import StageResult, drop_case, find_quote, hold_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.names import AnswerMatch, is_parent, match_answer, name_key, split_differential
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import OptionSettings
from medthink.curate.stage import Stage
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import ReplyForm, list_of, object_of, one_of

FEWEST_DISTRACTORS = 4
_ADD = "add the diagnosis to the list"
_RELATIONS = ("same", "parent", "also right", "different", "unsure")


class NumberedOption(Struct, frozen=True, forbid_unknown_fields=True):
    """The relation of one of the names to the right diagnosis."""

    number: int
    relation: Literal["same", "parent", "also right", "different", "unsure"]


class OptionForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """A model's verdicts on a list."""

    relations: list[NumberedOption]


class OptionStage(Stage[OptionSettings]):
    """Finds the right diagnosis and its distractors in each list."""

    name = "options"
    looks_at = ("history", "diagnosis", "list")

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """Find the right diagnosis, then its distractors."""
        items = _items(draft)
        gold, by = self._find_gold(draft, items, rulings, has_model=ask is not None)
        distractors, parents = _apart(gold, items)
        if ask is not None:
            distractors, doubts = await self._ask(draft, gold, distractors, ask)
            by = f"{by}, {ask.by}"
            if doubts:
                rulings.settle(hold_case("distractor-doubtful", by=ask.by, detail="; ".join(doubts)))
        return self._settle(draft, gold, distractors, parents, by)

    def _find_gold(self, draft: Draft, items: list[str], rulings: CaseRulings, *, has_model: bool) -> tuple[str, str]:
        """The wording of the right diagnosis, and the rule or person that found it in the list."""
        match = match_answer(draft.gold, items)
        if match is not None and match.is_certain:
            return match.item, f"rule {match.by}"
        if has_model or (match is None and self.settings.add_answer):
            return draft.gold, "rule add_answer"
        if match is None:
            detail = f"the list: {'; '.join(items)}"
            question = hold_case("gold-missing", by="rule gold", proposal=_ADD, detail=detail)
        else:
            detail = f"gold: {draft.gold}"
            question = hold_case("gold-proposed", by=f"rule {match.by}", proposal=match.item, detail=detail)
        return rulings.value_of(question, lambda value: _chosen(value, draft.gold, items, match)), "person"

    def _settle(self, draft: Draft, gold: str, distractors: list[str], parents: list[str], by: str) -> StageResult:
        quote = find_quote(draft, "curation.differential", gold)
        evidence = [quote] if quote else []
        left_out = f"left out, because it would also be right: {'; '.join(parents)}" if parents else ""
        if len(distractors) < FEWEST_DISTRACTORS:
            detail = f"{len(distractors)} distractors: {'; '.join(distractors)}" + (f"; {left_out}" if parents else "")
            is_enough = len(distractors) + len(parents) >= FEWEST_DISTRACTORS
            return drop_case("parent-of-gold" if is_enough else "few-options", by=by, detail=detail, evidence=evidence)
        made = self._with_options(draft, gold, distractors)
        return pass_case(made, reason="resolved", by=by, detail=left_out, evidence=evidence)

    def _with_options(self, draft: Draft, gold: str, distractors: list[str]) -> Draft:
        own = draft.notes.marks.get("ingest", {}).get("picks", [])
        picks = self._picks.get(draft.id, Counter()) + Counter(pick for pick in own if isinstance(pick, str))
        keys = {name_key(pick): count for pick, count in picks.items()}
        hard = {one: keys[name_key(one)] for one in distractors if name_key(one) in keys}
        mark = {"distractors": distractors} | ({"hard": hard} if hard else {})
        made = draft.with_reference(answer_text=gold).with_question(options={})
        return made.with_notes(candidates=(gold, *distractors)).with_mark(self.name, mark)

    @cached_property
    def _picks(self) -> dict[int, Counter[str]]:
        """The answers of evaluated models, by case."""
        from medthink.runs.run import Run

        picks: dict[int, Counter[str]] = {}
        for path in self.settings.distractor_runs:
            run = Run(self.context.path(path))
            cases = run.cases()
            for one in run.predictions():
                options = cases[one.case].question.options if one.case in cases else {}
                if one.prediction in options:
                    picks.setdefault(one.case, Counter())[options[one.prediction]] += 1
        return picks

    async def _ask(
        self, draft: Draft, gold: str, distractors: list[str], ask: StageModel
    ) -> tuple[list[str], list[str]]:
        """The distractors that the model does not call the same or broader, and its doubts about some of them."""
        numbered = [{"number": number, "name": name} for number, name in enumerate(distractors, start=1)]
        prompt = curate_prompt(
            "options",
            draft.id,
            data={"diagnosis": gold, "history": draft.case.question.history, "names": numbered},
            form={"relations": list_of(object_of(number={"type": "integer"}, relation=one_of(_RELATIONS)))},
            by_rules={"relations": [{"number": one["number"], "relation": "different"} for one in numbered]},
        )
        relations = (await ask(prompt, OptionForm, draft.id)).relations
        found = {one.number: one.relation for one in relations}
        if sorted(found) != list(range(1, len(distractors) + 1)) or len(relations) != len(distractors):
            raise Unanswered("unparsed", "the reply must cover each name exactly once")
        named = list(zip(distractors, (found[number] for number in sorted(found)), strict=True))
        doubts = [f"{name}: {relation}" for name, relation in named if relation in ("also right", "unsure")]
        return [name for name, relation in named if relation not in ("same", "parent")], doubts

    def not_covered(self) -> tuple[str, ...]:
        """Distractors that are also right, if no model is asked."""
        if self.settings.has_model:
            return ()
        return ("distractors that are synonyms of the right diagnosis or could be right as well: no model was asked",)


def _chosen(value: str, gold: str, items: list[str], match: AnswerMatch | None) -> str:
    """The right one among the names: the one that a person named, or the diagnosis, to be added.

    Beside a name that may mean the same, the diagnosis is added only by saying so: it would be right twice.
    """
    if value == _ADD or (value == gold and match is None):
        return gold
    if value in items:
        return value
    remedy = f"leave it empty, or write one name of the list, or: {_ADD}"
    raise DataError(f"{value!r} is no name of the list", remedy=remedy)


def _items(draft: Draft) -> list[str]:
    """The names to choose from: from the stated list, else the options that a benchmark already has."""
    return split_differential(draft.notes.differential, draft.gold) or list(draft.case.question.options.values())


def _apart(gold: str, items: list[str]) -> tuple[list[str], list[str]]:
    """The distinct distractors without the right diagnosis, and the broader terms that would also be right."""
    kept: dict[str, str] = {}
    parents: list[str] = []
    for item in items:
        key = name_key(item)
        if key == name_key(gold) or key in kept:
            continue
        if is_parent(item, gold):
            parents.append(item)
        else:
            kept[key] = item
    return list(kept.values()), parents


STAGE = OptionStage
