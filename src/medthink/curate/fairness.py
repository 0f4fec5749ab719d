"""Options that reveal nothing by their form: which distractors, which cases, which letters.

The right option of expert lists is often the longest. To put it at every length rank equally often, distractors are
chosen where a list has more than four; the rest is done by leaving out as few cases as the cap allows.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from random import Random
from typing import NamedTuple

from medthink.cases.case import LETTERS
from medthink.core.digest import seed_from
from medthink.curate.matching import is_parent
from medthink.curate.names import name_key, short_form

RANKS = range(len(LETTERS))
DISTRACTORS = len(LETTERS) - 1


class Contender(NamedTuple):
    """A case to be balanced: the ranks its right option can have, and how far that option stands out in length."""

    case: int
    reachable: tuple[int, ...]
    gap: int


def shorten(gold: str, distractors: Sequence[str]) -> tuple[str, list[str]]:
    """All names without brackets and trailing clauses, if they stay distinct and no distractor becomes right too."""
    names = [gold, *distractors]
    short = [short_form(name) for name in names]
    keys = Counter(name_key(one) for one in short)
    kept = [new if keys[name_key(new)] == 1 else old for old, new in zip(names, short, strict=True)]
    right = kept[0]
    others = [old if is_parent(new, right) else new for old, new in zip(distractors, kept[1:], strict=True)]
    return right, others


def length_rank(gold: str, distractors: Iterable[str]) -> int:
    """How many of the others are longer; of equal length, those later in the alphabet count as longer."""
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


def assign_ranks(contenders: Sequence[Contender]) -> dict[int, int]:
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
    movable: Sequence[Contender], ranks: dict[int, int], counts: Counter[int]
) -> tuple[int, int] | None:
    for one in movable:
        for rank in one.reachable:
            if counts[rank] + 1 < counts[ranks[one.case]]:
                return one.case, rank
    return None


def within_cap(counts: Sequence[int], cap: float) -> int:
    """The most cases of one rank that may stay so that no rank exceeds its share of the remaining cases."""
    total = sum(counts)
    while True:
        limit = max(int(cap * total + 1e-9), ceil(total / len(RANKS)))
        left = sum(min(count, limit) for count in counts)
        if left == total:
            return limit
        total = left


def leave_out(contenders: Sequence[Contender], ranks: dict[int, int], cap: float) -> set[int]:
    """The cases to leave out so that every rank stays within the cap: those whose right option stands out most."""
    by_rank: dict[int, list[Contender]] = {rank: [] for rank in RANKS}
    for one in contenders:
        by_rank[ranks[one.case]].append(one)
    limit = within_cap([len(group) for group in by_rank.values()], cap)
    dropped: set[int] = set()
    for group in by_rank.values():
        group.sort(key=lambda one: (one.gap, one.case))
        dropped |= {one.case for one in group[limit:]}
    return dropped


def deal_letters(cases: Iterable[int], seed: int, dealt: Counter[str] | None = None) -> dict[int, str]:
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


def lay_out(case: int, gold: str, distractors: Sequence[str], letter: str, seed: int) -> dict[str, str]:
    """The options by letter: the right one at its letter, the others at random."""
    rest = list(distractors)
    Random(seed_from("distractors", seed, case)).shuffle(rest)
    rest.insert(LETTERS.index(letter), gold)
    return dict(zip(LETTERS, rest, strict=True))
