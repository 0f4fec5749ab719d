"""Options: the right diagnosis and its distractors, from the experts' differential diagnosis.

The list is split with the right diagnosis protected. A match is certain only if the names are equal, spelling or
brackets aside; otherwise it is proposed, and a person or the model confirms it. Distractors that mean the same, or are
broader terms for it, are left out. `balance` chooses the five.
"""

import re
from collections import Counter
from functools import cache, cached_property
from typing import Literal

from msgspec import Struct

from medthink.cases.icd import who_tree
from medthink.core.errors import DataError
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import StageResult, drop_case, find_quote, hold_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.names import (
    AnswerMatch,
    eponyms_of,
    is_parent,
    match_answer,
    name_key,
    name_words,
    normalise_word,
    split_differential,
)
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import OptionSettings
from medthink.curate.stage import Stage
from medthink.metrics.words import american_word
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
        stated = self._items(draft)
        items = list(stated)
        gold, by = self._find_gold(draft, stated, rulings, has_model=ask is not None)
        distractors, parents = _apart(gold, items)
        if ask is not None:
            distractors, doubts = await self._ask(draft, gold, distractors, ask)
            by = f"{by}, {ask.by}"
            if doubts:
                rulings.settle(hold_case("distractor-doubtful", by=ask.by, detail="; ".join(doubts)))
        made = _renamed(draft, {gold: draft.gold} | stated)
        return self._settle(made, gold, distractors, parents, by, stated.get(gold, gold))

    def _items(self, draft: Draft) -> dict[str, str]:
        """The names to choose from, each with the words in which the list states it."""
        names = _listed(draft)
        if not self.settings.one_style:
            return {name: name for name in names}
        styled = {in_one_style(name) or self._kept(name, draft.gold): name for name in reversed(names)}
        return {name: styled[name] for name in reversed(styled) if name}

    def _find_gold(
        self, draft: Draft, stated: dict[str, str], rulings: CaseRulings, *, has_model: bool
    ) -> tuple[str, str]:
        """The wording of the right diagnosis, and the rule or person that found it in the list."""
        items, written = list(stated), {before: name for name, before in stated.items()}
        match = match_answer(draft.gold, list(written))
        if match is not None and match.is_certain:
            return written[match.item], f"rule {match.by}"
        if has_model or (match is None and self.settings.add_answer):
            return self._styled(draft.gold), "rule add_answer"
        if match is None:
            detail = f"the list: {'; '.join(items)}"
            question = hold_case("gold-missing", by="rule gold", proposal=_ADD, detail=detail)
        else:
            detail = f"gold: {draft.gold}"
            proposal = written[match.item]
            question = hold_case("gold-proposed", by=f"rule {match.by}", proposal=proposal, detail=detail)
        return rulings.value_of(
            question, lambda value: _chosen(value, self._styled(draft.gold), items, match)
        ), "person"

    def _styled(self, gold: str) -> str:
        return in_one_style(gold) or gold if self.settings.one_style else gold

    @staticmethod
    def _kept(name: str, gold: str) -> str:
        """The right diagnosis stays, whatever it looks like."""
        return name if name_key(name) == name_key(gold) else ""

    def _settle(
        self, draft: Draft, gold: str, distractors: list[str], parents: list[str], by: str, stated: str
    ) -> StageResult:
        quote = find_quote(draft, "curation.differential", stated)
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
    # A person may write it as the list does.
    if found := next((form for form in (value, in_one_style(value)) if form in items), ""):
        return found
    remedy = f"leave it empty, or write one name of the list, or: {_ADD}"
    raise DataError(f"{value!r} is no name of the list", remedy=remedy)


def _renamed(draft: Draft, stated: dict[str, str]) -> Draft:
    """The draft with the other names of each diagnosis under its present wording too."""
    known = draft.notes.aliases
    return draft.with_notes(aliases=known | {name: known[before] for name, before in stated.items() if before in known})


# Words that head a part of a list and name no disease.
_HEADINGS = frozenset(
    (
        "infectious", "infective", "inflammatory", "neoplastic", "vascular", "congenital", "traumatic", "metabolic",
        "degenerative", "autoimmune", "iatrogenic", "benign", "malignant", "toxic", "idiopathic", "other", "others",
        "miscellaneous", "common", "uncommon", "rare", "likely", "unlikely",
    )
)  # fmt: skip
_LONG_NAME, _LONGEST_NAME, _LONGEST_ACRONYM = 100, 150, 5
_EXPLANATION = re.compile(r"\s+[-–—]\s|[:;]\s|\.\s|,?\s+(?:which|because|since|but|as it)\b")
_OPEN = re.compile(r"\s*[(\[][^()\[\]]*$")
_STRAY = re.compile(r"^([^()\[\]]*)[)\]]")
_LETTERS = re.compile(r"[^\W\d_]+")
_PLAIN_ENDING = re.compile(
    r"(?:oma|omas|omata|itis|osis|oses|iasis|pathy|plasia|emia|oid|ous|ary|ive|ial|eal|nal|ral|tic|nic|ric|tion|sion|ism"
    r"|ess|ure|ectasis|cele|trophy|rrhage)$"
)


def in_one_style(name: str) -> str:
    """The name as every option is written, "" if it is a heading or an explanation and no name.

    No list mark, no stop at the end, no bracket left open, no explanation behind it; capitals as in a sentence, where
    persons and abbreviations keep theirs.
    """
    name = _STRAY.sub(r"\1", _OPEN.sub("", name))
    if len(name) > _LONG_NAME:
        name = _EXPLANATION.split(name)[0]
    is_heading = name.rstrip().endswith(":") or set(name_words(name)) <= _HEADINGS
    name = name.strip(" .;:,")
    return "" if is_heading or len(name) > _LONGEST_NAME else _in_sentence_case(name)


def _in_sentence_case(name: str) -> str:
    persons = {word for person in eponyms_of(name) for word in _LETTERS.findall(person)}

    is_shouted = name.isupper() and " " in name

    def lowered(match: re.Match[str]) -> str:
        word = match[0]
        is_acronym = word.isupper() and len(word) <= _LONGEST_ACRONYM and not is_shouted
        is_mixed = not (word.isupper() or word[1:].islower())
        return word if is_acronym or is_mixed or word in persons or not _is_plain(word.lower()) else word.lower()

    written = _LETTERS.sub(lowered, name)
    return written[:1].upper() + written[1:]


def _is_plain(word: str) -> bool:
    """Whether a word is no name of a person: a word of ICD-10 in lower case, or with a medical ending."""
    return american_word(word) in _plain_words() or _PLAIN_ENDING.search(normalise_word(word)) is not None


@cache
def _plain_words() -> frozenset[str]:
    tree = who_tree()
    titles = " ".join(str(tree.get_description(code)) for code in tree.get_all_codes())
    return frozenset(american_word(word) for word in _LETTERS.findall(titles) if word.islower())


def _listed(draft: Draft) -> list[str]:
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
