"""Image files whose parts cannot be followed to their end."""

from medthink.core.errors import DataError


class Malformed(DataError):
    """An image file whose segments or chunks cannot be followed to their end."""


class CutOff(Malformed):
    """An image file that ends before its picture does."""


def cut_off(name: str) -> CutOff:
    """The error for a file that ends too early."""
    return CutOff("the image is truncated", file=name, remedy="copy or download the file again")
