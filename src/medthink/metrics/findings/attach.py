"""Which side, site and size belong to which finding of a clause: the nearest one, by the cost of what lies between."""

from collections.abc import Sequence
from itertools import pairwise

from medthink.metrics.findings.lexicon import VERBS, Clause, Mention, word_set

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
    """The distance of the other mention from the finding; None if it belongs to something else."""
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


# A new noun phrase that starts with one of these after a comma or "and" is a statement of its own.
_OPENERS = word_set(
    "a an the there this these it its small large mild moderate severe minimal marked subtle multiple several some "
    "few tiny huge extensive diffuse scattered two three four with also"
)
# What may come between a two-way cue and the finding it governs.
_STOPS = VERBS | word_set(", and or nor ( ) in of on at with to by since compared over than from as")
_LINKS = VERBS | word_set("be been considered as being seems")
# The past ends where the patient's story continues.
_STORY = VERBS | word_set(
    "presented presenting presents presentation underwent who with now came developed complained complains referred "
    "admitted for"
)
_DETERMINERS = word_set("a an the its this these their")
# Nouns that deny one entry of a list of findings, and not the entries after it.
_MISSING = word_set("lack absence loss lacks lacking")


def reach(clause: Clause, cue: Mention) -> tuple[int, int]:
    """The words of the clause that a cue applies to, by the direction its name ends in."""
    if cue.name == "history_next":
        return cue.end, _first_place(clause.words, cue.end, _STORY)
    if cue.name.endswith("_previous") or (not cue.name.endswith("_next") and not _is_before_its_finding(clause, cue)):
        return _reach_back(clause, cue), cue.start
    return cue.end, _reach_forward(clause, cue)


def _is_before_its_finding(clause: Clause, cue: Mention) -> bool:
    findings = clause.of_kind("finding", "normal")
    following = [f for f in findings if f.start >= cue.end]
    if following and _STOPS.isdisjoint(clause.words[cue.end : following[0].start]):
        return True
    return _describes_what_follows(clause, cue) or not any(f.end <= cue.start for f in findings)


def _describes_what_follows(clause: Clause, cue: Mention) -> bool:
    """Whether the cue is an adjective of an unknown word: "a possible process", but not "is possible"."""
    before = clause.words[cue.start - 1] if cue.start else ""
    after = clause.words[cue.end] if cue.end < len(clause.words) else ","
    return before not in _LINKS and after not in _STOPS


def _first_place(words: Sequence[str], start: int, stops: frozenset[str]) -> int:
    """The first place from here on that holds one of these words; the end where none does."""
    return next((place for place in range(start, len(words)) if words[place] in stops), len(words))


def _reach_forward(clause: Clause, cue: Mention) -> int:
    words = clause.words
    for place in range(cue.end, len(words)):
        if words[place] in (",", "and", ")") and (_starts_anew(clause, place) or _ends_its_entry(clause, cue, place)):
            return place
        if words[place] == "with" and _brings_its_own(clause, cue, place):
            return place
    return len(words)


def _brings_its_own(clause: Clause, cue: Mention, place: int) -> bool:
    """Whether `with` states what is present: "no diffusion restriction with scalloping", "no contact with the mass"."""
    if clause.words[place + 1 : place + 2] and clause.words[place + 1] in _DETERMINERS:
        return True
    return any(cue.end <= f.start and f.end <= place for f in clause.of_kind("finding"))


def _ends_its_entry(clause: Clause, cue: Mention, place: int) -> bool:
    """Whether a denial is one entry of a list that ends here: "dilatation, lack of enhancement, and pneumatosis"."""
    if clause.words[cue.start] not in _MISSING:
        return False
    denied = [m for m in clause.of_kind("finding", "normal", "site") if cue.end <= m.start and m.end <= place]
    if not any(m.kind in ("finding", "normal") for m in denied):
        return bool(denied)
    is_listed = clause.words[cue.start - 1 : cue.start] in ((",",), ("and",))
    return is_listed and any(f.end <= cue.start for f in clause.of_kind("finding"))


def _starts_anew(clause: Clause, place: int) -> bool:
    """Whether a list that a cue governs ends at this comma or `and`."""
    rest = clause.words[place + 1 :]
    while rest and rest[0] in ("and", ","):
        rest = rest[1:]
    if not rest or rest[0] in ("or", "nor"):
        return False
    opener = len(clause.words) - len(rest)
    if rest[0] in _OPENERS or any(m.start == opener and _opens(m) for m in clause.mentions):
        return not _is_listed_with_or(clause, place)
    return False


def _opens(mention: Mention) -> bool:
    """Whether a mention at the start of a list entry makes it a statement of its own."""
    return mention.kind in ("side", "size", "normal") or (mention.kind == "cue" and not mention.name.startswith("neg"))


def _is_listed_with_or(clause: Clause, place: int) -> bool:
    """Whether an `or` closes the list that this comma is in: "no A, small B, or C" denies all three."""
    rest = clause.words[place + 1 :]
    until = next((i for i, word in enumerate(rest) if word in VERBS or word == "and"), len(rest))
    return clause.words[place] == "," and bool({"or", "nor"} & set(rest[:until]))


def _reach_back(clause: Clause, cue: Mention) -> int:
    """Back to the start of the clause, but past a comma only where `and` or `or` closes the list."""
    closed = False
    for place in range(cue.start - 1, -1, -1):
        word = clause.words[place]
        if word in ("and", "or", "nor"):
            closed = True
        elif word == "," and not closed:
            return place + 1
    return 0
