"""What is read off a clause before it is understood: its words, and what the lexicon knows among them."""

from typing import Literal

import msgspec

from medthink.metrics.findings.lexicon import word_set

VERBS = word_set(
    "is are was were has have had shows show showed demonstrates demonstrate demonstrated reveals reveal revealed "
    "appears appear appeared there contains contain contained remains exhibits exhibited measures measured"
)

MarkKind = Literal["finding", "normal", "site", "side", "cue", "size"]


class Mention(msgspec.Struct, frozen=True):
    """Something the lexicon knows, or a measurement, at words `start` to `end` of its clause."""

    kind: MarkKind
    name: str
    start: int
    end: int
    size_mm: float | None = None


class Clause(msgspec.Struct, frozen=True):
    """The words of one clause and the mentions in it."""

    words: tuple[str, ...]
    mentions: tuple[Mention, ...]

    def of_kind(self, *kinds: MarkKind) -> list[Mention]:
        """The mentions of these kinds, in reading order."""
        return [mention for mention in self.mentions if mention.kind in kinds]

    def cues(self, *names: str) -> list[Mention]:
        """The cues of these names, in reading order."""
        return [mention for mention in self.mentions if mention.kind == "cue" and mention.name in names]
