"""Which side, site and size belong to which finding of a clause: the nearest one, by the cost of what lies between."""

from collections.abc import Sequence
from itertools import pairwise

from medthink.metrics.findings.lexicon import word_set
from medthink.metrics.findings.mention import VERBS, Clause, Mention

_FREE = word_set("of the in a an at within on its")
_PREPOSITIONS = word_set("in on at of within involving throughout over along near around to from into")
_COORDINATORS = {",": 6, "and": 3, "or": 3, "nor": 3, "/": 3, "with": 4, "(": 2, ")": 2}
# After these comes what a finding is compared with, not where it is.
_COMPARISONS = word_set("than compared relative versus resembling unlike comparison respect contralateral")
_COMPARABLE = (
    "hyperintensity", "hypointensity", "isointensity", "hyperdensity", "hypodensity", "isodensity",
    "hyperechogenicity", "hypoechogenicity", "isoechogenicity",
)  # fmt: skip
# Words that open a noun phrase of its own.
_ARTICLES = word_set("a an the another several multiple few some two three small large")
# "MRI of the hand showed": the hand is what was examined, and a site nearer to the finding is more specific.
_REPORTING = word_set("shows show showed demonstrates demonstrated reveals revealed")
_REPORTING_COST = 5
# These are about what follows them.
_FORWARD = ("extension", "abutment")
_VERB_COST = 2
_CROSSED_FINDING = 3
_NO_PREPOSITION = 2
_TOO_FAR = 14
_TOO_FAR_FOR_A_SIZE = 24


def nearest(
    clause: Clause, finding: Mention, candidates: Sequence[Mention], *, walls: Sequence[Mention] = ()
) -> Mention | None:
    """The mention that belongs to the finding and is not blocked; of two equally near, the one before it."""
    reachable = [m for m in candidates if not any(_is_between(wall, finding, m) for wall in walls)]
    costs = [(cost, m.start, m) for m in reachable if (cost := _cost(clause, finding, m)) is not None]
    return min(costs, key=lambda entry: entry[:2])[2] if costs else None


def _is_between(wall: Mention, one: Mention, other: Mention) -> bool:
    return min(one.start, other.start) < wall.start < max(one.start, other.start)


def _cost(clause: Clause, finding: Mention, other: Mention) -> int | None:
    """How far the other is from the finding; None where it belongs to something else."""
    comes_after = other.start >= finding.end
    start, end = (finding.end, other.start) if comes_after else (other.end, finding.start)
    between = clause.words[start:end]
    inside = [m for m in clause.mentions if start <= m.start and m.end <= end]
    if any(m.kind == "cue" and m.name.startswith(("negates_next", "resolves_next", "other")) for m in inside):
        return None
    if not comes_after and finding.name in _FORWARD and other.kind in ("site", "side"):
        return None
    if comes_after and _is_compared(clause, finding, between, inside):
        return None
    crossed = sum(m.kind in ("finding", "normal") for m in inside)
    if other.kind == "side" and not comes_after and crossed and _is_another_phrase(clause, finding, between, inside):
        return None
    if comes_after and crossed and _opens_a_phrase(between):
        return None
    if not crossed and any(word in _COORDINATORS for word in between) and not _joins_like(inside, finding, other):
        return None
    if crossed and comes_after and "with" in between:
        return None
    cost = sum(_word_cost(word) for word in between) + _CROSSED_FINDING * crossed
    if comes_after and _PREPOSITIONS.isdisjoint(between) and VERBS.isdisjoint(between):
        cost += _NO_PREPOSITION
    if not comes_after and other.kind == "site" and not _REPORTING.isdisjoint(between):
        cost = min(cost + _REPORTING_COST, _TOO_FAR)
    limit = _TOO_FAR_FOR_A_SIZE if "size" in (finding.kind, other.kind) else _TOO_FAR
    return cost if cost <= limit else None


def _is_compared(clause: Clause, finding: Mention, between: Sequence[str], inside: Sequence[Mention]) -> bool:
    """Whether what follows is only a comparison: in "hyperintense to muscle" nothing is said to be in the muscle."""
    if not _COMPARISONS.isdisjoint(between) or any(
        m.name in _COMPARABLE and clause.words[m.end : m.end + 1] == ("to",) for m in inside
    ):
        return True
    return finding.name in _COMPARABLE and between[:1] in (("to",), ("with",))


def _is_another_phrase(clause: Clause, finding: Mention, between: Sequence[str], inside: Sequence[Mention]) -> bool:
    """Whether a side is an earlier phrase's: "left effusion and atelectasis" shares it, "and a renal cyst" does not."""
    joints = [place for place, word in enumerate(between) if word in ("and", ",", "with", "or")]
    if not joints:
        return False
    after = between[joints[-1] + 1 :]
    has_place = clause.words[finding.end : finding.end + 1] in (("of",), ("in",), ("within",), ("along",))
    return has_place or after[:1] in tuple((word,) for word in _ARTICLES) or any(m.kind == "site" for m in inside)


def _opens_a_phrase(between: Sequence[str]) -> bool:
    """Whether a new phrase begins in between: "an effusion and the presence of gas in the liver"."""
    return any(one in ("and", ",") and two in ("a", "an", "the") for one, two in pairwise(between))


def _joins_like(inside: Sequence[Mention], finding: Mention, other: Mention) -> bool:
    """Whether the joined words are of the same kind: "cysts in the liver and spleen", "2 cm, well-defined mass"."""
    return "size" in (finding.kind, other.kind) or any(m.kind == other.kind for m in inside)


def _word_cost(word: str) -> int:
    if word in _FREE:
        return 0
    return _COORDINATORS.get(word, _VERB_COST if word in VERBS else 1)
