"""Findings that a case does not have: a sentence about the same region that no expert text mentions."""

import tomllib
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from medthink.judge.content import content_tokens


class Region(msgspec.Struct, frozen=True):
    """A body region: words that identify it, and findings keyed by the words that must not occur in the case."""

    cues: tuple[str, ...]
    findings: dict[str, str]


def invent_finding(said: str, chance: Random) -> str | None:
    """A sentence with a finding in the region the texts are about, but which they do not mention."""
    words = {token.word for token in content_tokens(said)}
    counts = {name: sum(cue in words for cue in region.cues) for name, region in _bank().items()}
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        return None
    fitting = [text for terms, text in _bank()[best].findings.items() if not words & set(terms.split())]
    return chance.choice(fitting) if fitting else None


@cache
def _bank() -> dict[str, Region]:
    with (Path(__file__).parent / "inventions.toml").open("rb") as stream:
        return msgspec.convert(tomllib.load(stream), dict[str, Region])
