"""Which side, site and size belong to which finding of a clause: the nearest, by a cost of what lies between."""

from collections.abc import Sequence

from medthink.metrics.findings.clauses import VERBS, Clause, Mention
from medthink.metrics.findings.lexicon import word_set

_FREE = word_set("of the in a an at within on its")
_PREPOSITIONS = word_set("in on at of within involving throughout over along near around to from into")
_COORDINATORS = {",": 6, "and": 3, "or": 3, "nor": 3, "/": 3, "with": 4, "(": 2, ")": 2}
_VERB_COST = 2
_CROSSED_FINDING = 3
_NO_PREPOSITION = 2
_TOO_FAR = 14
_TOO_FAR_FOR_A_SIZE = 24


def nearest(
    clause: Clause, finding: Mention, candidates: Sequence[Mention], *, walls: Sequence[Mention] = ()
) -> Mention | None:
    """The mention that belongs to the finding and is not behind a wall; of two as near, the one before it."""
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
    crossed = sum(m.kind in ("finding", "normal") for m in inside)
    if not crossed and any(word in _COORDINATORS for word in between) and not _joins_like(inside, finding, other):
        return None
    if crossed and comes_after and "with" in between:
        return None
    cost = sum(_word_cost(word) for word in between) + _CROSSED_FINDING * crossed
    if comes_after and _PREPOSITIONS.isdisjoint(between) and VERBS.isdisjoint(between):
        cost += _NO_PREPOSITION
    limit = _TOO_FAR_FOR_A_SIZE if "size" in (finding.kind, other.kind) else _TOO_FAR
    return cost if cost <= limit else None


def _joins_like(inside: Sequence[Mention], finding: Mention, other: Mention) -> bool:
    """Whether the words joined are of one kind: "cysts in the liver and spleen", "2 cm, well-defined mass"."""
    return "size" in (finding.kind, other.kind) or any(m.kind == other.kind for m in inside)


def _word_cost(word: str) -> int:
    if word in _FREE:
        return 0
    return _COORDINATORS.get(word, _VERB_COST if word in VERBS else 1)
