"""Whether a mention is what it looks like: a word that names a finding alone may only describe another."""

from collections.abc import Sequence

from medthink.metrics.findings.lexicon import word_set
from medthink.metrics.findings.mention import Mention

# Adjectives that tell of what a finding is made or how it is shaped, and state nothing more right before its name.
_DESCRIBING = word_set("solid irregular fatty nodular")
# What "irregular" says of these is their shape.
_OUTLINES = word_set("margin margins border borders edge edges shape shaped")
_BEFORE_AN_ORGAN = word_set("the its anterior posterior medial lateral joint articular")


def is_meant(words: Sequence[str], mention: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether a mention is what it looks like: "both" is a side in "both lungs", not in "both lesions"."""
    if mention.kind == "finding":
        return _is_finding(words, mention, mentions)
    if words[mention.start] != "both" or mention.end - mention.start > 1:
        return True
    return any(other.kind == "site" and 0 <= other.start - mention.end <= 1 for other in mentions)


def _is_finding(words: Sequence[str], mention: Mention, mentions: Sequence[Mention]) -> bool:
    word = words[mention.start]
    before = words[mention.start - 1] if mention.start else ""
    if before == "non":
        return False
    if mention.end - mention.start > 1:
        return True
    if word == "capsule":
        is_organ = any(other.kind == "site" and other.end == mention.start for other in mentions)
        return before not in _BEFORE_AN_ORGAN and not is_organ
    return word not in _DESCRIBING or _states_its_own(words, mention, mentions)


def _states_its_own(words: Sequence[str], mention: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether an adjective states a finding of its own: "the surface is irregular", not "an irregular mass"."""
    word = words[mention.start]
    following = next((m for m in mentions if m.start >= mention.end and m.kind in ("finding", "site")), None)
    describes = following is not None and following.start - mention.end <= 1 and following.kind == "finding"
    if word == "fatty":  # "a fatty mass", but not "fatty mesentery"
        return describes
    if word == "solid" and "and" in (*words[max(mention.start - 1, 0) : mention.start], *words[mention.end :][:1]):
        return True
    return not describes and _OUTLINES.isdisjoint(words[mention.end : mention.end + 2])
