"""Tests of whether a model has memorised arbitrary facts about published cases: option order and case number.

What was drawn at random cannot be inferred, only remembered. The error rate of these tests therefore depends on chance
alone, whatever a model knows about the subject.
"""

from collections.abc import Sequence
from itertools import permutations
from math import ceil, factorial, log

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.estimate import Floats, as_floats, is_flat
from medthink.stats.intervals import student_p_value, student_quantile
from medthink.stats.power import rate_for_hits

_SHUFFLES = 20_000
_BLOCK = 20
_NEAR = 0.25
_PEAK = 1.3
POWER = 0.8
LEAST_P = 1 / (_SHUFFLES + 1)
"""The smallest p-value that shuffled labels can give."""


class MemorisationTest(msgspec.Struct, frozen=True, kw_only=True):
    """The value found on `n` cases, the value expected without memory, and the one-sided p-value.

    `detectable` is the share of cases (for an order of answers: the difference) whose memory would be seen with 80 %
    power at the level asked; None where none would. `spread` is how far the other labels named are off, at the median:
    how finely a model dates cases.
    """

    n: int
    found: float
    expected: float
    p_value: float
    detectable: float | None
    spread: float | None = None


def places_recalled(
    named: Sequence[Sequence[int]], actual: Sequence[Sequence[int]], *, alpha: float
) -> MemorisationTest:
    """Whether things were restored to their positions: for each case the positions named, and the actual ones.

    The positions within a case were drawn at random, so every arrangement was equally likely.
    The chance of at least as many hits in total is computed exactly. Found and expected are shares of things at the
    right position.
    """
    chances = [_hits_by_lot(tuple(guess), tuple(place)) for guess, place in zip(named, actual, strict=True)]
    hits = sum(g == a for guess, place in zip(named, actual, strict=True) for g, a in zip(guess, place, strict=True))
    things = sum(map(len, actual))
    if not things:
        return MemorisationTest(n=0, found=0.0, expected=0.0, p_value=1.0, detectable=None)
    total = _convolve(chances)
    tails = total[::-1].cumsum()[::-1]
    means = np.array([(row * np.arange(len(row))).sum() for row in chances])
    spread = float(np.sqrt(sum((row * np.arange(len(row)) ** 2).sum() for row in chances) - (means**2).sum()))
    least = int(np.argmax(tails <= alpha)) if (tails <= alpha).any() else len(tails)
    # A remembered case has all its things right, where a random arrangement is expected to have one.
    share = (least - means.sum() + student_quantile(2 * POWER - 1, 10**4) * spread) / max(1, things - len(chances))
    return MemorisationTest(
        n=len(chances),
        found=hits / things,
        expected=float(means.sum()) / things,
        p_value=min(1.0, float(tails[hits])),
        detectable=float(share) if share <= 1 else None,
    )


def labels_recalled(
    named: Sequence[int | None], actual: Sequence[int], *, alpha: float, rng: np.random.Generator
) -> MemorisationTest:
    """Whether cases were recognised by their labels, which are unrelated to their content.

    Labels may follow the years, and content may reveal the year. So two things must hold. Shuffled among twenty cases
    with neighbouring labels, few of 20,000 shuffles have as many hits. And a label is hit more often than the labels
    just beside it are named: a model that dates a case to within a few numbers, and remembers none, misses by one as
    often as by none. p is the larger of the two.
    """
    order = np.argsort(np.asarray(actual), kind="stable")
    labels = np.asarray(actual, dtype=np.int64)[order]
    guesses = np.array([-1 if one is None else one for one in named], dtype=np.int64)[order]
    hits = int((guesses == labels).sum())
    drawn = np.zeros(_SHUFFLES, dtype=np.int64)
    blocks = np.array_split(np.arange(len(labels)), max(1, round(len(labels) / _BLOCK)))
    for block in blocks:
        # Guesses outside the block's labels cannot hit.
        if np.isin(guesses[block], labels[block]).any():
            shuffled = rng.permuted(np.broadcast_to(labels[block], (_SHUFFLES, len(block))), axis=1)
            drawn += (shuffled == guesses[block]).sum(axis=1)
    by_dating, chance, spread = _hits_by_dating(np.abs(guesses - labels)[guesses >= 0])
    smallest = min(map(len, blocks))
    # Random hits have a chance of about 1/smallest each; half the level allows for the approximation.
    least = ceil(log(2 / alpha) / log(smallest)) if smallest > 1 else len(labels) + 1
    return MemorisationTest(
        n=len(labels),
        found=hits / max(1, len(labels)),
        expected=max(float(drawn.mean()), chance) / max(1, len(labels)),
        p_value=max(float((1 + (drawn >= hits).sum()) / (_SHUFFLES + 1)), by_dating),
        detectable=_share_for(least, len(labels)),
        spread=spread,
    )


def _hits_by_dating(distances: npt.NDArray[np.int64]) -> tuple[float, float, float | None]:
    """The chance of so many hits by dating alone, how many it would give, and the median distance of the others.

    Within the nearest quarter of the misses, guesses are taken to be spread evenly, with a margin: a spread with a peak
    in its middle has more guesses there.
    """
    from scipy.stats import binom

    misses = distances[distances > 0]
    if not len(misses):
        return 0.0, 0.0, None
    reach = max(1, int(np.quantile(misses, _NEAR)))
    near, hits = int((distances <= reach).sum()), int((distances == 0).sum())
    chance = min(1.0, _PEAK / (2 * reach + 1))
    return float(binom.sf(hits - 1, near, chance)), near * chance, float(np.median(misses))


def order_favoured(published: npt.ArrayLike, other: npt.ArrayLike, *, alpha: float) -> MemorisationTest:
    """Whether more cases succeed in the published order than in a random one: McNemar's exact test, one-sided.

    Found and expected are the shares of cases that succeed in the published order, and in the other one.
    """
    from scipy.stats import binom

    ours, theirs = as_floats(published, name="published"), as_floats(other, name="other")
    only_ours, only_theirs = int(((ours > 0) & (theirs == 0)).sum()), int(((theirs > 0) & (ours == 0)).sum())
    least = only_theirs
    while least <= len(ours) and binom.sf(least - 1, least + only_theirs, 0.5) > alpha:
        least += 1
    share = _share_for(least, len(ours))
    return MemorisationTest(
        n=len(ours),
        found=float(ours.mean()) if len(ours) else 0.0,
        expected=float(theirs.mean()) if len(ours) else 0.0,
        p_value=float(binom.sf(only_ours - 1, only_ours + only_theirs, 0.5)),
        detectable=None if share is None else share - only_theirs / max(1, len(ours)),
    )


def order_gained(
    right: npt.ArrayLike,
    letters: Sequence[str],
    right_reordered: npt.ArrayLike,
    letters_reordered: Sequence[str],
    *,
    alpha: float,
) -> MemorisationTest | None:
    """Whether answers are better in the published order than in another, apart from any letter bias.

    `letters` are those of the right option, case by case. The other order is weighted as if the right option had each
    letter as often as in the published one: a model that prefers A would gain from many right A's without any memory.
    Paired t test over cases, one-sided. Found is the accuracy, expected the weighted one. None where a letter never
    occurs in the other order.
    """
    ours, theirs = as_floats(right, name="right"), as_floats(right_reordered, name="right_reordered")
    if len(ours) < 2 or not set(letters) <= set(letters_reordered):
        return None
    wanted, had = list(letters), list(letters_reordered)
    weights = np.array([wanted.count(letter) / had.count(letter) for letter in had])
    gaps: Floats = ours - weights * theirs
    error = float(gaps.std(ddof=1)) / len(gaps) ** 0.5
    gain, degrees = float(gaps.mean()), len(gaps) - 1
    two_sided = 1.0 if is_flat(gaps) else student_p_value(gain / error, degrees)
    reach = (student_quantile(1 - 2 * alpha, degrees) + student_quantile(2 * POWER - 1, degrees)) ** 2
    # Memory of a share d of the cases adds about d to the variance of the gaps: n·d² = reach·(variance + d).
    seen = (reach + (reach**2 + 4 * len(gaps) * reach * float(gaps.var(ddof=1))) ** 0.5) / (2 * len(gaps))
    return MemorisationTest(
        n=len(gaps),
        found=float(ours.mean()),
        expected=float((weights * theirs).mean()),
        p_value=two_sided / 2 if gain > 0 else 1 - two_sided / 2,
        detectable=seen,
    )


def _hits_by_lot(named: tuple[int, ...], actual: tuple[int, ...]) -> Floats:
    """The chances of 0, 1, 2 … hits when the actual places are arranged at random."""
    hits = [sum(g == a for g, a in zip(named, order, strict=True)) for order in permutations(actual)]
    return np.bincount(hits, minlength=len(actual) + 1) / factorial(len(actual))


def _convolve(chances: Sequence[Floats]) -> Floats:
    total: Floats = np.ones(1)
    for row in chances:
        total = np.convolve(total, row)
    return total


def _share_for(hits: int, n: int) -> float | None:
    """The share of remembered cases that would be detected with 80 % power."""
    return rate_for_hits(hits, n=n, power=POWER) if 0 < hits <= n else None
