"""How numbers are written, in the terminal, in reports, on pages and in exports: one form for each."""

NOTHING = "–"
"""Shown where there is no number."""


def as_percent(share: float, digits: int = 1) -> str:
    """`0.341` as `34.1 %`."""
    return f"{as_decimal(share * 100, digits)} %"


def as_rate(share: float, low: float, high: float) -> str:
    """A rate with its interval: `57.2 % (53.6–60.8)`; a share of a gain may be negative: `5.1 % (−13.0 to 23.2)`."""
    share, low, high = (_rounded(one, 3) for one in (share, low, high))
    to = "–" if low >= 0 else " to "
    return f"{as_percent(share)} ({low * 100:.1f}{to}{high * 100:.1f})".replace("-", "−")


def as_points(difference: float, digits: int = 1) -> str:
    """A difference of rates in percentage points, with its sign: `+2.7`, `−8.0`."""
    return f"{_rounded(difference * 100, digits):+.{digits}f}".replace("-", "−")


def as_points_and_ends(difference: float, low: float, high: float) -> tuple[str, str]:
    """`+2.7` and `−2.7 to +8.0`; more digits where the nearer end is not 0 and would be written as 0: it decides."""
    nearer = 0.0 if low <= 0 <= high else min(low, high, key=abs)
    digits = next((k for k in range(1, 5) if not nearer or _rounded(nearer * 100, k)), 5)
    return as_points(difference, digits), f"{as_points(low, digits)} to {as_points(high, digits)}"


def as_value_with_interval(value: float, low: float, high: float) -> str:
    """A number with its interval: `0.143 (0.139–0.147)`, `0.010 (−0.020 to 0.040)`."""
    value, low, high = (_rounded(one, 3) for one in (value, low, high))
    to = "–" if low >= 0 else " to "
    return f"{value:.3f} ({low:.3f}{to}{high:.3f})".replace("-", "−")


def as_decimal(value: float, digits: int) -> str:
    """`1.17`, `−0.25`."""
    return f"{_rounded(value, digits):.{digits}f}".replace("-", "−")


def as_p_value(p: float, floor: float = 0.0) -> str:
    """`0.0312`; `< 0.0001` if it is smaller, or if it is the smallest value that random draws can give."""
    least = max(floor, 0.0001)
    # A floor of 1/20,001 is written as 0.0001.
    return f"< {least:.2g}" if p <= least else f"{p:.3g}"


def as_usd(usd: float | None, *, is_least: bool = False) -> str:
    """`$12.30`; a small sum with two significant digits: `$0.0042`; `unknown` where no price is known.

    `at least $12.30` where more may have been billed (`is_least`): for requests whose replies never arrived.
    """
    if usd is None:
        return "unknown"
    told = f"${usd:,.2f}" if usd == 0 or usd >= 0.1 else f"${_plain(usd)}"
    return f"at least {told}" if is_least else told


def as_saved(usd: float) -> str:
    """What a cache has saved; where more was written to it than read: `nothing, and costs $0.02`."""
    return as_usd(usd) if usd >= 0 else f"nothing, and costs {as_usd(-usd)}"


def as_count(count: float | None) -> str:
    """A count of tokens, calls or cases: `12,345`; a dash where it is not known."""
    return NOTHING if count is None else f"{count:,.0f}"


def count_of(number: int, one: str, many: str = "") -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def these_readers(number: int) -> str:
    """`This reader`, `These 4 readers`: what an interval is about in which cases are random and readers are not."""
    return "This reader" if number == 1 else f"These {count_of(number, 'reader')}"


def _plain(small: float) -> str:
    """Two significant digits, never as `4e-05`, and two decimals at least."""
    whole, _, decimals = f"{float(f'{small:.1e}'):.10f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):0<2}"


def _rounded(value: float, digits: int) -> float:
    """Rounded first, so that nothing is written as −0.0."""
    return round(value, digits) + 0.0
