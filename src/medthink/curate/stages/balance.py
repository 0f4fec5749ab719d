"""Balance: five options for each case, whose lengths and letters reveal nothing about the answer."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from random import Random
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from medthink.cases.case import LETTERS, Case
from medthink.core.digest import seed_from
from medthink.core.errors import DataError
from medthink.core.numbers import count_of
from medthink.curate.ask import StageModel
from medthink.curate.decision import StageResult, drop_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.names import is_parent, name_key, short_form
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import BalanceSettings
from medthink.curate.stage import Drafts, Stage

RANKS = range(len(LETTERS))
DISTRACTORS = len(LETTERS) - 1
# Of fewer cases, an uneven order of lengths tells a guesser next to nothing, and evening it out costs half of them.
FEWEST_TO_BALANCE = 40


class BalanceCase(NamedTuple):
    """A case to be balanced: the ranks its right option can have, and how much longer it is than the others.

    One that is published counts and is never left out.
    """

    case: int
    reachable: tuple[int, ...]
    gap: int
    is_published: bool = False


def shorten_options(gold: str, distractors: Sequence[str]) -> tuple[str, list[str]]:
    """All names without brackets and trailing clauses, if they stay distinct and no distractor becomes right too."""
    names = [gold, *distractors]
    short = [short_form(name) for name in names]
    keys = Counter(name_key(one) for one in short)
    kept = [new if keys[name_key(new)] == 1 else old for old, new in zip(names, short, strict=True)]
    right = kept[0]
    others = [old if is_parent(new, right) else new for old, new in zip(distractors, kept[1:], strict=True)]
    return right, others


def length_rank(gold: str, distractors: Iterable[str]) -> int:
    """The number of other options that are longer; of equal length, those later in the alphabet count as longer."""
    return sum((len(other), other) > (len(gold), gold) for other in distractors)


def reachable_ranks(gold: str, distractors: Sequence[str], hard: Sequence[str]) -> tuple[int, ...]:
    """The ranks that the right option can have with four of the distractors, the hard ones among them."""
    longer = [one for one in distractors if length_rank(gold, [one])]
    needed = sum(one in longer for one in hard)
    shorter = len(distractors) - len(longer)
    return tuple(
        rank for rank in RANKS if needed <= rank <= len(longer) and len(hard) - needed <= DISTRACTORS - rank <= shorter
    )


def choose_distractors(
    gold: str, distractors: Sequence[str], hard: Sequence[str], *, rank: int, chance: Random
) -> list[str]:
    """Four distractors that give the right option its rank: the hard ones, then others at random."""
    longer = [one for one in distractors if length_rank(gold, [one])]
    shorter = [one for one in distractors if one not in longer]
    chosen: list[str] = []
    for pool, wanted in ((longer, rank), (shorter, DISTRACTORS - rank)):
        needed = [one for one in pool if one in hard]
        rest = [one for one in pool if one not in needed]
        chosen += needed[:wanted] + chance.sample(rest, wanted - len(needed[:wanted]))
    return chosen


def assign_ranks(contenders: Sequence[BalanceCase]) -> dict[int, int]:
    """A rank for each case, as even as their lists allow."""
    ranks: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for one in sorted(contenders, key=lambda one: (len(one.reachable), one.case)):
        ranks[one.case] = min(one.reachable, key=lambda rank: (counts[rank], rank))
        counts[ranks[one.case]] += 1
    movable = [one for one in contenders if len(one.reachable) > 1]
    while move := _improving_move(movable, ranks, counts):
        case, rank = move
        counts[ranks[case]] -= 1
        counts[rank] += 1
        ranks[case] = rank
    return ranks


def _improving_move(
    movable: Sequence[BalanceCase], ranks: dict[int, int], counts: Counter[int]
) -> tuple[int, int] | None:
    for one in movable:
        for rank in one.reachable:
            if counts[rank] + 1 < counts[ranks[one.case]]:
                return one.case, rank
    return None


def within_cap(counts: Sequence[int], cap: float) -> int:
    """The maximum number of cases per rank at which no rank exceeds its share of the remaining cases."""
    total = sum(counts)
    while True:
        limit = max(int(cap * total + 1e-9), ceil(total / len(RANKS)))
        left = sum(min(count, limit) for count in counts)
        if left == total:
            return limit
        total = left


def rank_cap(cases: int, cap: float) -> float:
    """The share that a rank may have of so many cases: any, where they are too few to be balanced."""
    return cap if cases >= FEWEST_TO_BALANCE else 1.0


def cases_over_cap(contenders: Sequence[BalanceCase], ranks: dict[int, int], cap: float) -> set[int]:
    """The cases to leave out so that every rank stays within the cap: new ones whose right option stands out most."""
    by_rank: dict[int, list[BalanceCase]] = {rank: [] for rank in RANKS}
    for one in contenders:
        by_rank[ranks[one.case]].append(one)
    limit = within_cap([len(group) for group in by_rank.values()], cap)
    dropped: set[int] = set()
    for group in by_rank.values():
        group.sort(key=lambda one: (not one.is_published, one.gap, one.case))
        dropped |= {one.case for one in group[limit:] if not one.is_published}
    return dropped


def assign_letters(cases: Iterable[int], seed: int, dealt: Counter[str] | None = None) -> dict[int, str]:
    """A random letter for each case, as evenly as possible: counts differ by at most one.

    `dealt` counts letters already given to other splits: together with those they also differ by at most one.
    """
    drawn = sorted(cases, key=lambda case: seed_from("letters", seed, case))
    chance = Random(seed_from("letter blocks", seed, len(drawn)))
    counts = Counter() if dealt is None else dealt
    letters: dict[int, str] = {}
    for start in range(0, len(drawn), len(LETTERS)):
        block = drawn[start : start + len(LETTERS)]
        # The last block is short: it gets the least used letters.
        least = sorted(chance.sample(LETTERS, len(LETTERS)), key=counts.__getitem__)[: len(block)]
        chance.shuffle(least)
        letters |= zip(block, least, strict=True)
        counts.update(least)
    return letters


def place_options(case: int, gold: str, distractors: Sequence[str], letter: str, seed: int) -> dict[str, str]:
    """The options by letter: the right one at its letter, the others at random."""
    rest = list(distractors)
    Random(seed_from("distractors", seed, case)).shuffle(rest)
    rest.insert(LETTERS.index(letter), gold)
    return dict(zip(LETTERS, rest, strict=True))


def with_letter(draft: Draft, letter: str, published: Case | None, seed: int) -> Draft:
    """The draft with its options in the published order, else with the right one at this letter."""
    reference = draft.case.reference
    if published is not None:
        return draft.with_question(options=published.question.options).with_reference(answer=published.reference.answer)
    others = [text for other, text in draft.case.question.options.items() if other != reference.answer]
    options = place_options(draft.id, reference.answer_text, others, letter, seed)
    return draft.with_question(options=options).with_reference(answer=letter)


def count_letters(published: Iterable[Case]) -> Counter[str]:
    """How often each letter is right in published cases."""
    return Counter(case.reference.answer for case in published)


_PRICED = (0.20, 0.21, 0.23, 0.26, 0.30, 1.0)


class Pool(Struct, frozen=True):
    """The options that a case offers: the right one, its distractors, and those that must stay.

    `published` has the options that it was published with; `not_as_released` says why they cannot stay.
    """

    gold: str
    distractors: list[str]
    hard: list[str]
    published: Case | None = None
    not_as_released: str = ""


class BalanceStage(Stage[BalanceSettings]):
    """The choice of distractors and of cases, and the letters."""

    name = "balance"
    follows_release = True

    def survey(self, drafts: Drafts) -> None:
        """Decide for all cases together which rank each gets, which are left out, and the letters."""
        contenders, published = list[BalanceCase](), dict[int, Case]()
        for draft in drafts():
            pool = self._pool(draft)
            is_known = self.context.release.case_of(draft) is not None
            contenders.append(_contender(draft.id, pool)._replace(is_published=is_known))
            published |= {} if pool.published is None else {draft.id: pool.published}
        able = [one for one in contenders if one.reachable]
        self._ranks = assign_ranks(able)
        cap = rank_cap(len(able), self.settings.max_rank_share)
        self._dropped = cases_over_cap(able, self._ranks, cap)
        kept = [one.case for one in able if one.case not in self._dropped]
        new = [case for case in kept if case not in published]
        dealt = count_letters(published.values())
        self._letters = assign_letters(new, self.context.seed, dealt)
        self._told_letters = dealt
        self._before = Counter(self._ranks.values())
        self._after = Counter(self._ranks[case] for case in kept)

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:  # noqa: ARG002
        """The draft with its five options, or a decision to leave it out."""
        pool = self._pool(draft)
        if draft.id not in self._ranks:
            return drop_case("few-options", by="rule five options", detail=f"{len(pool.distractors)} distractors")
        rank = self._ranks[draft.id]
        if draft.id in self._dropped:
            detail = f"too many right options would rank {rank + 1} by length"
            return drop_case("length-rank", by=f"rule max_rank_share {self.settings.max_rank_share:g}", detail=detail)
        if pool.published is not None:
            made = draft.with_reference(answer_text=pool.published.reference.answer_text)
            return pass_case(with_letter(made, "", pool.published, self.context.seed), reason="as-released")
        chance = Random(seed_from("choice", self.context.seed, draft.id))
        chosen = choose_distractors(pool.gold, pool.distractors, pool.hard, rank=rank, chance=chance)
        letter = self._letters[draft.id]
        options = place_options(draft.id, pool.gold, chosen, letter, self.context.seed)
        made = draft.with_question(options=options).with_reference(answer=letter, answer_text=pool.gold)
        return pass_case(made, reason="dealt", by="rule balance", detail=pool.not_as_released)

    def _pool(self, draft: Draft) -> Pool:
        """The options to choose from, shortened if requested."""
        gold, stated = stated_options(draft)
        counts = draft.notes.marks.get("options", {}).get("hard", {})
        hardest = sorted(counts, key=lambda one: (-counts[one], one))[: self.settings.hard_distractors]
        right, others = shorten_options(gold, stated) if self.settings.shorten else (gold, stated)
        renamed = dict(zip(stated, others, strict=True))
        pool = Pool(right, others, [renamed[one] for one in hardest if one in renamed])
        published = self.context.release.case_of(draft)
        if published is None:
            return pool
        why = _why_not_as_released(published, [gold, right], [*stated, *others])
        return replace(pool, not_as_released=why) if why else replace(pool, published=published)

    def not_covered(self) -> tuple[str, ...]:
        """The lengths of few cases."""
        return few_to_balance(len(self._ranks))

    def report(self) -> dict[str, Any]:
        """The ranks before and after, the letters, and the number of cases at other caps."""
        counts = [self._before[rank] for rank in RANKS]
        prices = {cap: sum(min(count, within_cap(counts, cap)) for count in counts) for cap in _PRICED}
        letters = self._told_letters
        return {
            "length ranks before": "/".join(map(str, counts)),
            "length ranks after": "/".join(str(self._after[rank]) for rank in RANKS),
            "letters": " ".join(f"{letter} {letters[letter]}" for letter in sorted(letters)),
            "cases kept by rank cap": ", ".join(f"{cap:g}: {kept}" for cap, kept in prices.items()),
        }


def few_to_balance(cases: int) -> tuple[str, ...]:
    """What is not covered where there are too few cases to leave any out for the lengths of their options."""
    if not cases or cases >= FEWEST_TO_BALANCE:
        return ()
    return (
        f"lengths of the right options: {count_of(cases, 'case')}, and only {FEWEST_TO_BALANCE} or more are balanced",
    )


def stated_options(draft: Draft) -> tuple[str, list[str]]:
    """The right diagnosis and its distractors: from the list, else from the options that a benchmark already has."""
    gold = draft.gold
    listed = draft.notes.candidates or tuple(draft.case.question.options.values())
    return gold, [name for name in dict.fromkeys(listed) if name != gold]


def _why_not_as_released(published: Case, golds: list[str], distractors: list[str]) -> str:
    """Why the case cannot have its published options, "" if it can: each must be a name of its list, however short."""
    options, answer = published.question.options, published.reference.answer_text
    right, others = (
        {name_key(form) for one in names for form in (one, short_form(one))} for names in (golds, distractors)
    )
    if list(options) != list(LETTERS) or options.get(published.reference.answer) != answer:
        return "the release does not have five options with the right one among them"
    if name_key(answer) not in right:
        return f"the right diagnosis was {answer}"
    gone = [text for text in options.values() if text != answer and name_key(text) not in others - right]
    return f"no distractor any more: {'; '.join(gone)}" if gone else ""


def _contender(case: int, pool: Pool) -> BalanceCase:
    if pool.published is not None:
        question, answer = pool.published.question, pool.published.reference.answer_text
        others = [text for text in question.options.values() if text != answer]
        return BalanceCase(case, (length_rank(answer, others),), 0)
    reachable = reachable_ranks(pool.gold, pool.distractors, pool.hard) if len(pool.distractors) >= DISTRACTORS else ()
    lengths = sorted(map(len, pool.distractors))
    middle = lengths[len(lengths) // 2] if lengths else 0
    return BalanceCase(case, reachable, abs(len(pool.gold) - middle))


def refuse_other_options(draft: Draft) -> None:
    """DataError for a case whose options are not the five that ranks and letters are for."""
    if list(draft.case.question.options) != list(LETTERS):
        problem = f"case {draft.id} has {len(draft.case.question.options)} options, not the five from A to E"
        raise DataError(problem, field="options", remedy="let the stage balance choose five first")


def answer_length_rank(draft: Draft) -> int:
    """The length rank of the right option among the five."""
    answer = draft.case.reference.answer_text
    return length_rank(answer, [text for text in draft.case.question.options.values() if text != answer])


STAGE = BalanceStage
