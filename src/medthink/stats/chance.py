"""How often a guesser that has learnt nothing is right so often: for statistics whose chance is no binomial."""

from collections.abc import Sequence
from math import erfc, exp, fsum, gamma, sqrt

import numpy as np


def largest_count_p_value(largest: int, cases: int, letters: int) -> float:
    """The probability that the most frequent of so many equally likely letters is right in at least `largest` cases.

    Exact: independent Poisson counts, given their sum, are multinomial (Levin 1981). Far in the tail, where the
    difference from 1 would be lost in rounding, the sum over the letters is as good.
    """
    from scipy.stats import binom, poisson

    if largest <= -(-cases // letters):
        return 1.0
    bound = float(letters * binom.sf(largest - 1, cases, 1 / letters))
    if bound < 1e-6:
        return bound
    smaller = poisson.pmf(np.arange(largest), cases / letters)
    together = smaller
    for _ in range(letters - 1):
        together = np.convolve(together, smaller)[: cases + 1]
    below = float(together[cases] / poisson.pmf(cases, cases)) if len(together) > cases else 0.0
    return min(1.0, max(0.0, 1 - below))


def hits_p_value(hits: int, by_chance: Sequence[int], cases: int, chance: float) -> float:
    """The probability of so many hits, from a sample of hit counts made by chance whose spread is not binomial.

    The count is set against the sample's mean and spread by the t distribution for one further draw, and by a binomial
    tail at the same distance, which has the skewness of few cases; the larger of the two counts.
    """
    from scipy.special import betainc
    from scipy.stats import t

    sample = np.asarray(by_chance, dtype=float)
    rounds, spread = len(sample), float(sample.std(ddof=1))
    if spread == 0:
        return 1.0 if hits <= sample.mean() else 0.0
    distance = (hits - float(sample.mean())) / (spread * (1 + 1 / rounds) ** 0.5)
    alike = cases * chance + distance * (cases * chance * (1 - chance)) ** 0.5
    tail = 1.0 if alike <= 0 else 0.0 if alike >= cases else float(betainc(alike, cases - alike + 1, chance))
    return max(float(t.sf(distance, rounds - 1)), tail)


def chi_square_tail(statistic: float, freedom: int) -> float:
    """The upper tail of χ² with so many degrees of freedom, by its finite sum."""
    half, odd = statistic / 2, freedom % 2
    terms = (half ** (k + odd / 2.0) / gamma(k + odd / 2 + 1) for k in range(freedom // 2))
    return odd * erfc(sqrt(half)) + exp(-half) * fsum(terms)
