"""Student's distribution for whole degrees of freedom; importing scipy takes longer than scoring a small run."""

from functools import lru_cache
from math import atan, exp, lgamma, log1p, pi, sin, sqrt
from statistics import NormalDist

from medthink.stats.estimate import check_level

_MOST_STEPS = 200


@lru_cache
def student_quantile(level: float, degrees: int) -> float:
    """The t that leaves (1 − level)/2 in each tail of Student's distribution."""
    check_level(level)
    if degrees < 1:
        raise ValueError(f"degrees of freedom must be 1 or more, not {degrees}")
    # The central mass is concave in t, so Newton's steps from the normal quantile climb and never overshoot: one that
    # does not climb is rounding.
    t = NormalDist().inv_cdf((1 + level) / 2)
    for _ in range(_MOST_STEPS):
        step = (level - _central_mass(t, degrees)) / (2 * _density(t, degrees))
        t += step
        if step < 1e-14 * t:
            break
    return t


def student_p_value(t: float, degrees: int) -> float:
    """The chance of a value at least as far from 0 as t."""
    return max(0.0, 1 - _central_mass(abs(t), degrees))


def _central_mass(t: float, degrees: int) -> float:
    """P(−t < T < t), by the finite series in the angle whose tangent is t/√degrees (Abramowitz and Stegun 26.7.3–4)."""
    angle = atan(t / sqrt(degrees))
    cosine_squared = degrees / (degrees + t * t)
    is_odd = degrees % 2
    term = sqrt(cosine_squared) if is_odd else 1.0
    total = 0.0 if degrees == 1 else term
    for k in range(2 + is_odd, degrees, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if is_odd else sin(angle) * total


def _density(t: float, degrees: int) -> float:
    scale = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / sqrt(degrees * pi)
    return scale * exp(-(degrees + 1) / 2 * log1p(t * t / degrees))
