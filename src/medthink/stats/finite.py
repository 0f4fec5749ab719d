"""What a random sample says of a finite whole: exact, without the assumption that the whole is endless."""

from medthink.stats.estimate import check_level


def most_in_whole(found: int, *, sample: int, whole: int, alpha: float) -> float:
    """The largest share of the whole that can hold a mark which `found` of `sample` members drawn at random hold.

    The largest number of marked members M with P(X ≤ found) ≥ α, X being hypergeometric, as a share of the whole: an
    exact upper limit at confidence 1 − α, whatever the share. Equal to found/sample when the sample is the whole.
    Rival: Clopper–Pearson, which is the same for an endless whole and wider here.
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
