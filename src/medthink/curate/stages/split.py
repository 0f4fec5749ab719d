"""Split: by case, near-duplicates together, stratified by ICD chapter, modality and length rank.

Earlier stages left out cases after the options were balanced, so the length ranks are brought under their cap again,
and the letters of each split are assigned for the last time.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from medthink.cases.case import LETTERS
from medthink.core.errors import UsageError
from medthink.curate.asking import StageAsk
from medthink.curate.decision import StageResult, drop, keep
from medthink.curate.dividing import LabelledGroup, divide
from medthink.curate.draft import Draft
from medthink.curate.duplicates import Groups, ImageLooks, TextSketches
from medthink.curate.fairness import RANKS, Contender, deal_letters, lay_out, leave_out
from medthink.curate.stage import Drafts, Stage, StageSettings
from medthink.curate.stages.balance import gold_rank

TRAIN, VALIDATION, TEST = "train", "validation", "test"


class SplitSettings(StageSettings, frozen=True, kw_only=True):
    """The sizes of the splits, and their limits."""

    test: Annotated[float, Meta(description="The share of cases in the test split.", gt=0, le=1)] = 0.2
    validation: Annotated[float, Meta(description="The share of cases in a validation split.", ge=0, lt=1)] = 0.0
    rank_cap: Annotated[
        float, Meta(description="Maximum share of cases for one length rank of the right option.", gt=0, le=1)
    ] = 0.23


class SplitStage(Stage[SplitSettings]):
    """The final choice of cases, splits and letters."""

    name = "split"
    settings_type = SplitSettings

    def survey(self, drafts: Drafts) -> None:
        """Group, balance the ranks, split, assign letters."""
        shares = self._shares()
        seen = [_Seen(draft.id, _labels(draft), gold_rank(draft), _gap(draft)) for draft in drafts()]
        ranks = {one.case: one.rank for one in seen}
        contenders = [Contender(one.case, (one.rank,), one.gap) for one in seen]
        self._dropped = leave_out(contenders, ranks, self.settings.rank_cap)
        kept = [one for one in seen if one.case not in self._dropped]
        members = _gather(_find_groups(drafts), kept)
        labelled = [
            LabelledGroup(name, len(ones), Counter(label for one in ones for label in one.labels))
            for name, ones in members.items()
        ]
        splits = divide(labelled, shares, self.context.seed)
        self._splits = {one.case: splits[name] for name, ones in members.items() for one in ones}
        self._group = {one.case: name for name, ones in members.items() if len(ones) > 1 for one in ones}
        self._letters: dict[int, str] = {}
        dealt: Counter[str] = Counter()
        for split in shares:
            own = [case for case, found in self._splits.items() if found == split]
            self._letters |= deal_letters(own, self.context.seed, dealt)
        self._ranks = Counter(one.rank for one in kept)

    def _shares(self) -> dict[str, float]:
        rest = 1 - self.settings.test - self.settings.validation
        if rest < -1e-9:
            raise UsageError("the test and validation shares add up to more than 1", remedy="make them smaller")
        shares = {TRAIN: max(0.0, rest), VALIDATION: self.settings.validation, TEST: self.settings.test}
        return {split: share for split, share in shares.items() if share > 0}

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:  # noqa: ARG002
        """The draft with its split and its letter, or out."""
        if draft.id in self._dropped:
            detail = f"the right option is number {gold_rank(draft) + 1} by length once too often"
            return drop("length-rank", by=f"rule rank_cap {self.settings.rank_cap:g}", detail=detail)
        question, reference = draft.case.question, draft.case.reference
        others = [text for letter, text in question.options.items() if letter != reference.answer]
        letter = self._letters[draft.id]
        options = lay_out(draft.id, reference.answer_text, others, letter, self.context.seed)
        group = self._group.get(draft.id)
        made = draft.with_question(options=options).with_reference(answer=letter)
        made = made.with_notes(split=self._splits[draft.id], group="" if group is None else f"like case {group}")
        return keep(made, reason=self._splits[draft.id], by="rule split", detail=made.notes.group)

    def report(self) -> dict[str, Any]:
        """Sizes, groups, ranks and letters."""
        sizes = Counter(self._splits.values())
        letters = Counter((self._splits[case], letter) for case, letter in self._letters.items())
        told = {
            f"letters of {split}": " ".join(f"{letter} {letters[split, letter]}" for letter in LETTERS)
            for split in sizes
        }
        return {
            "splits": ", ".join(f"{split} {sizes[split]}" for split in sizes),
            "cases with a near-duplicate": len(self._group),
            "length ranks": "/".join(str(self._ranks[rank]) for rank in RANKS),
        } | told


class _Seen(NamedTuple):
    """What the split needs to know about a case."""

    case: int
    labels: list[str]
    rank: int
    gap: int


def _find_groups(drafts: Drafts) -> Groups:
    """Groups of cases that share a picture, a history or a named group."""
    groups, texts, looks = Groups(), TextSketches(), ImageLooks()
    for draft in drafts():
        groups.join([draft.id, *texts.add(draft.id, draft.case.question.history)])
        if draft.notes.group:
            groups.join([draft.id, f"group {draft.notes.group}"])
        noted = {one["id"]: one.get("phash", "") for one in draft.notes.marks.get("ingest", {}).get("images", [])}
        for image in draft.case.question.images:
            looks.add(draft.id, image, noted.get(image.id, ""))
    for pair in looks.pairs():
        groups.join(pair)
    return groups


def _gather(groups: Groups, kept: list[_Seen]) -> dict[int, list[_Seen]]:
    """The groups among these cases, each by its lowest number."""
    gathered: dict[Hashable, list[_Seen]] = {}
    for one in kept:
        gathered.setdefault(groups.find(one.case), []).append(one)
    return {min(one.case for one in ones): ones for ones in gathered.values()}


def _labels(draft: Draft) -> list[str]:
    reference = draft.case.reference
    chapter = reference.icd_chapter.partition(" - ")[0]
    return [f"icd {chapter}", f"rank {gold_rank(draft)}", *(f"modality {one}" for one in draft.case.modalities)]


def _gap(draft: Draft) -> int:
    """How far the right option stands out in length."""
    answer = draft.case.reference.answer_text
    lengths = sorted(len(text) for text in draft.case.question.options.values() if text != answer)
    return abs(len(answer) - lengths[len(lengths) // 2]) if lengths else 0


STAGE = SplitStage
