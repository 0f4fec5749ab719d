"""Balance: five options for each case, whose lengths and letters say nothing about the answer."""

from collections import Counter
from random import Random
from typing import Annotated, Any

from msgspec import Meta, Struct

from medthink.core.digest import seed_from
from medthink.curate.asking import StageAsk
from medthink.curate.decision import StageResult, drop, keep
from medthink.curate.draft import Draft
from medthink.curate.fairness import (
    DISTRACTORS,
    RANKS,
    Contender,
    assign_ranks,
    choose_distractors,
    deal_letters,
    lay_out,
    leave_out,
    length_rank,
    reachable_ranks,
    shorten,
    within_cap,
)
from medthink.curate.stage import Drafts, Stage, StageSettings

_PRICED = (0.20, 0.21, 0.23, 0.26, 0.30, 1.0)


class BalanceSettings(StageSettings, frozen=True, kw_only=True):
    """How far the options are balanced, and at what cost in cases."""

    rank_cap: Annotated[
        float, Meta(description="Maximum share of cases for one length rank of the right option.", gt=0, le=1)
    ] = 0.23
    shorten: Annotated[bool, Meta(description="Remove brackets and trailing clauses from all options alike.")] = True
    hard: Annotated[
        int, Meta(description="How many hard distractors to keep, by how often models chose them.", ge=0, le=4)
    ] = 1


class Pool(Struct, frozen=True):
    """The options that a case offers: the right one, its distractors, and those that must stay."""

    gold: str
    distractors: list[str]
    hard: list[str]


class BalanceStage(Stage[BalanceSettings]):
    """The choice of distractors and of cases, and the letters."""

    name = "balance"
    settings_type = BalanceSettings

    def survey(self, drafts: Drafts) -> None:
        """Decide for all cases together which rank each gets, which are left out, and the letters."""
        contenders = [_contender(draft.id, self._pool(draft)) for draft in drafts()]
        able = [one for one in contenders if one.reachable]
        self._ranks = assign_ranks(able)
        self._dropped = leave_out(able, self._ranks, self.settings.rank_cap)
        kept = [one.case for one in able if one.case not in self._dropped]
        self._letters = deal_letters(kept, self.context.seed)
        self._before = Counter(self._ranks.values())
        self._after = Counter(self._ranks[case] for case in kept)

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:  # noqa: ARG002
        """The draft with its five options, or out."""
        pool = self._pool(draft)
        if draft.id not in self._ranks:
            return drop("few-options", by="rule five options", detail=f"{len(pool.distractors)} distractors")
        rank = self._ranks[draft.id]
        if draft.id in self._dropped:
            detail = f"the right option would be number {rank + 1} by length once too often"
            return drop("length-rank", by=f"rule rank_cap {self.settings.rank_cap:g}", detail=detail)
        chance = Random(seed_from("choice", self.context.seed, draft.id))
        chosen = choose_distractors(pool.gold, pool.distractors, pool.hard, rank=rank, chance=chance)
        letter = self._letters[draft.id]
        options = lay_out(draft.id, pool.gold, chosen, letter, self.context.seed)
        made = draft.with_question(options=options).with_reference(answer=letter, answer_text=pool.gold)
        return keep(made, reason="dealt", by="rule balance")

    def _pool(self, draft: Draft) -> Pool:
        """The options to choose from, shortened if requested."""
        gold, stated = stated_options(draft)
        counts = draft.notes.marks.get("options", {}).get("hard", {})
        hardest = sorted(counts, key=lambda one: (-counts[one], one))[: self.settings.hard]
        right, others = shorten(gold, stated) if self.settings.shorten else (gold, stated)
        renamed = dict(zip(stated, others, strict=True))
        return Pool(right, others, [renamed[one] for one in hardest if one in renamed])

    def report(self) -> dict[str, Any]:
        """The ranks before and after, the letters, and what other caps would have cost."""
        counts = [self._before[rank] for rank in RANKS]
        prices = {cap: sum(min(count, within_cap(counts, cap)) for count in counts) for cap in _PRICED}
        letters = Counter(self._letters.values())
        return {
            "length ranks before": "/".join(map(str, counts)),
            "length ranks after": "/".join(str(self._after[rank]) for rank in RANKS),
            "letters": " ".join(f"{letter} {letters[letter]}" for letter in sorted(letters)),
            "cases kept by rank cap": ", ".join(f"{cap:g}: {kept}" for cap, kept in prices.items()),
        }


def stated_options(draft: Draft) -> tuple[str, list[str]]:
    """The right diagnosis and its distractors: from the list, else from the options that a benchmark already has."""
    gold = draft.gold
    listed = draft.notes.candidates or tuple(draft.case.question.options.values())
    return gold, [name for name in dict.fromkeys(listed) if name != gold]


def _contender(case: int, pool: Pool) -> Contender:
    reachable = reachable_ranks(pool.gold, pool.distractors, pool.hard) if len(pool.distractors) >= DISTRACTORS else ()
    lengths = sorted(map(len, pool.distractors))
    middle = lengths[len(lengths) // 2] if lengths else 0
    return Contender(case, reachable, abs(len(pool.gold) - middle))


def gold_rank(draft: Draft) -> int:
    """The length rank of the right option among the five."""
    answer = draft.case.reference.answer_text
    return length_rank(answer, [text for text in draft.case.question.options.values() if text != answer])


STAGE = BalanceStage
