"""Shares and p-values as people read them."""


def as_percent(share: float, digits: int = 1) -> str:
    """`0.341` as `34.1 %`, the one form in tables and messages."""
    return f"{share * 100:.{digits}f} %"


def as_p_value(p: float, floor: float = 0.0) -> str:
    """`0.0312`, or `< 0.0001` for what is smaller, or is the least that so many random draws can give."""
    least = max(floor, 0.0001)
    # A floor of 1/20,001 is below 0.0001 and says no more than that.
    return f"< {least:.2g}" if p <= least else f"{p:.3g}"
