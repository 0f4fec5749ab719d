"""A split held in memory, and what pins it."""

import msgspec

from medthink.cases.benchmark import Benchmark, fingerprint_texts
from medthink.cases.case import Case


class HeldSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Cases of a split by number, all or some, and the fingerprint of the texts of the whole split."""

    split: Benchmark
    cases: dict[int, Case]
    text_fingerprint: str


def hold_split(split: Benchmark) -> HeldSplit:
    """Read a split once, without its images."""
    cases = list(split)
    return HeldSplit(split=split, cases={case.id: case for case in cases}, text_fingerprint=fingerprint_texts(cases))
