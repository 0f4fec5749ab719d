"""How an amount of money is shown."""


def as_usd(usd: float | None, places: int = 4) -> str:
    """US dollars, or "unknown" where the price or the tokens are not known: `$1.2345`."""
    return "unknown" if usd is None else f"${usd:,.{places}f}"
