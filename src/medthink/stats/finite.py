"""What a random sample says about a finite population, exactly, without assuming an infinite one."""

from medthink.stats.estimate import check_level


def most_in_whole(found: int, *, sample: int, whole: int, alpha: float) -> float:
    """The largest share of a population that can have a mark, given that `found` of `sample` random members have it.

    The largest number of marked members M with P(X ≤ found) ≥ α, X being hypergeometric, as a share of the population:
    an exact upper limit at confidence 1 − α, whatever the share. Equal to found/sample when the sample is the
    population. Rival: Clopper–Pearson, which is the same for an infinite population and wider here.
    """
    from scipy.stats import hypergeom

    check_level(1 - alpha)
    if not 0 <= found <= sample <= whole or sample < 1:
        raise ValueError(f"{found} of {sample} drawn from {whole}")
    low, high = found, found + whole - sample
    while low < high:
        middle = (low + high + 1) // 2
        is_possible = hypergeom.cdf(found, whole, middle, sample) >= alpha
        low, high = (middle, high) if is_possible else (low, middle - 1)
    return low / whole
