"""How far a cue reaches in its clause: negation, doubt and change over time."""

from collections.abc import Sequence

from medthink.metrics.findings.lexicon import word_set
from medthink.metrics.findings.mention import VERBS, Clause, Mention

# A new noun phrase that starts with one of these after a comma or "and" is a statement of its own.
_OPENERS = word_set(
    "a an the there this these it its small large mild moderate severe minimal marked subtle multiple several some "
    "few tiny huge extensive diffuse scattered two three four with also"
)
# What may stand between a two-way cue and the finding it governs.
_STOPS = VERBS | word_set(", and or nor ( ) in of on at with to by since compared over than from as")
_LINKS = VERBS | word_set("be been considered as being seems")
# What was before ends where the patient's story goes on.
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
    """Whether `with` tells what is there: "no diffusion restriction with scalloping", "no contact with the mass"."""
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
