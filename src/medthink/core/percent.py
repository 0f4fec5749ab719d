"""Shares as people read them."""


def as_percent(share: float, digits: int = 1) -> str:
    """`0.341` as `34.1 %`, the one form in tables and messages."""
    return f"{share * 100:.{digits}f} %"
