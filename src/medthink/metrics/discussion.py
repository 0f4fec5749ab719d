"""How many of the reference's sections a discussion has.

Coverage, range 0 to 1, higher is better, is the share of the reference's sections that the candidate has; a reference
without headings has no sections to cover, so there is no value.
"""

from collections.abc import Sequence

from medthink.cases.sections import split_discussion


def section_coverage(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
    """The share of each reference's sections that its candidate has; None where the reference has none."""
    return [_coverage(ref, cand) for ref, cand in zip(references, candidates, strict=True)]


def _coverage(reference: str, candidate: str) -> float | None:
    due = split_discussion(reference).sections.keys()
    return len(due & split_discussion(candidate).sections.keys()) / len(due) if due else None
