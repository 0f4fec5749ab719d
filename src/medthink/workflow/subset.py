"""Which images of a case are shown, and whose: deterministic, nested, and independent of any global generator."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import ceil

from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.workflow.condition import ImageChoice


@cache
def count_shown(total: int, share: float) -> int:
    """How many of `total` images a share is: rounded up, so that any share above 0 shows at least one."""
    # The share is read as the decimal it was written as: in binary floats, 7 % of 100 images would come to 8.
    return ceil(Fraction(repr(share)) * total)


def choose(total: int, *, share: float, choice: ImageChoice, key: int) -> tuple[int, ...]:
    """The positions shown, ascending; a smaller share's positions are always among a larger one's."""
    return tuple(sorted(rank(total, choice=choice, key=key)[: count_shown(total, share)]))


def rank(total: int, *, choice: ImageChoice, key: int) -> list[int]:
    """All positions in the order in which a growing share takes them up."""
    match choice:
        case "first":
            return list(range(total))
        case "spread":
            return _spread(total)
        case "seeded":
            return shuffle(range(total), key=key)


def shuffle(positions: Iterable[int], *, key: int) -> list[int]:
    """Positions in an order that depends on the key alone."""
    return sorted(positions, key=lambda position: seed_from(key, position))


def donors(case_ids: Iterable[int], seed: int) -> dict[int, int]:
    """For each case another one that provides its images; every case is used exactly once."""
    ring: Sequence[int] = sorted(set(case_ids), key=lambda case_id: seed_from("donor", seed, case_id))
    if len(ring) < 2:
        raise UsageError("no other case to take images from", remedy="swapping needs at least two cases")
    return dict(zip(ring, [*ring[1:], ring[0]], strict=True))


def donor(case_ids: Iterable[int], case_id: int, seed: int) -> int:
    """The case that provides the images for this one."""
    lenders = donors(case_ids, seed)
    if case_id not in lenders:
        raise UsageError(f"case {case_id} is not among the cases given", remedy="pass the ids of the whole split")
    return lenders[case_id]


def _spread(total: int) -> list[int]:
    """First, last, then repeatedly the middle of the widest gap, the leftmost of equal ones."""
    taken = list(dict.fromkeys([0, total - 1])) if total else []
    order = list(taken)
    while len(order) < total:
        left, right = max(pairwise(taken), key=lambda gap: gap[1] - gap[0])
        middle = (left + right) // 2
        taken.insert(taken.index(right), middle)
        order.append(middle)
    return order
