"""Discussions whose sections cannot be identified."""

from collections.abc import Iterator

from medthink.cases.case import Case
from medthink.cases.check.report import Finding
from medthink.cases.sections import has_headings


class HeadingTally:
    """Counts, for one split, the discussions without any section heading."""

    def __init__(self) -> None:
        self.discussions = 0
        self.plain = 0

    def add(self, case: Case) -> None:
        """Take in a case; an empty discussion has its own problem and is not counted."""
        text = case.reference.discussion
        if text.strip():
            self.discussions += 1
            self.plain += not has_headings(text)

    def findings(self) -> Iterator[Finding]:
        """How many have none, if any."""
        if self.plain:
            detail = f"{self.plain:,} of {self.discussions:,} discussions have no section heading"
            yield Finding("discussion-unsectioned", "discussion", detail)
