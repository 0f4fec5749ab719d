"""Statements from text, by rules over the lexicon's mentions."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import cast

from medthink.metrics.findings.attach import nearest, reach
from medthink.metrics.findings.clauses import read_clauses
from medthink.metrics.findings.lexicon import (
    VERBS,
    Certainty,
    Change,
    Clause,
    Lexicon,
    Mention,
    Polarity,
    Side,
    Statement,
    is_english,
    read_lexicon,
    word_set,
)

_STUDIES = word_set(
    "study examination exam radiograph scan ct mri mr ultrasound ray film chest appearance appearances findings "
    "imaging sonography scintigraphy pet"
)
_PLACES = word_set("within in of around inside near surrounding from to at on")
_DEFINITE = word_set("the this these that its")
_LISTS = word_set("and or nor ,")
_WAYS = ("next", "previous", "either")
_DENIALS = tuple(f"{verb}_{way}" for verb in ("negates", "resolves") for way in _WAYS)
_DOUBTS = tuple(f"doubts_{way}" for way in _WAYS)
_UNLIKELY = tuple(f"unlikely_{way}" for way in _WAYS)
_RESOLVES = tuple(f"resolves_{way}" for way in _WAYS)
_CHANGES = ("stable", "increased", "decreased", "new")
# Before these, or before a description, "increased" describes an amount, not growth.
_DEGREES = word_set("mild mildly moderate moderately marked markedly severe severely slight slightly minimal diffuse")
_BARE = (("increased",), ("decreased",))
_DENIES_NORMAL = ("not", "absent", "loss")
_NORMAL = ("normal", "abnormality")
_NORMAL_REACH = 2
_JOINS = word_set("and or with but without no")
_UNSEEN = ("negates_previous", "negates_either")
# Said only of other findings than those told, of the past, or of what could not be judged.
_UNTOLD = ("other", "other_previous", "history_next")
_CALLS = VERBS | word_set(": be been looks seem seems")
_GRADES = word_set(
    "otherwise grossly completely entirely also all well both of within largely essentially relatively quite"
)
# What is called normal in these clauses was not imaged.
_NOT_IMAGED = word_set(
    "laboratory test tests blood serum enzyme enzymes level levels count counts neurological neurologic physical "
    "clinical vital temperature pressure urine urinalysis marker markers hemoglobin creatinine delivery pregnancy "
    "electrocardiogram ecg eeg weight vision visual strength sensation reflexes tone gait biochemical biochemistry "
    "values range inflammatory vitals history workup electrolytes fundus ophthalmic ophthalmological"
)
_AIM = word_set("suggest indicate")
# After these, what is normal is only what a finding is beside, or set against.
_BESIDE = word_set("adjacent surrounding than to the from neighboring contralateral overlying underlying its")
_REMEMBERED = 16_384


def extract_statements(text: str, lexicon: Lexicon | None = None) -> tuple[Statement, ...]:
    """The statements of a text, each once, in reading order."""
    return _extract_known(text) if lexicon is None else _extract(text, lexicon)


@lru_cache(maxsize=_REMEMBERED)
def _extract_known(text: str) -> tuple[Statement, ...]:
    """The same, cached: every run is scored against the same references."""
    return _extract(text, read_lexicon())


def _extract(text: str, lexicon: Lexicon) -> tuple[Statement, ...]:
    if not is_english(text):
        return ()
    stated = (s for clause in read_clauses(text, lexicon) for s in (*_read_clause(clause, lexicon), *_unseen(clause)))
    return _merge(stated)


def _read_clause(clause: Clause, lexicon: Lexicon) -> Iterator[Statement]:
    polarities = {finding: _polarity(clause, finding) for finding in clause.of_kind("finding", "normal")}
    sizes = _sizes_by_finding(clause, lexicon)
    for finding, (polarity, certainty) in polarities.items():
        if _cues_over(clause, finding, *_UNTOLD) or _is_normal_itself(clause, finding):
            continue
        # Present and absent findings do not share a side or a site.
        walls = [other for other, (its, _) in polarities.items() if its != polarity]
        sides = [] if finding.name in lexicon.unsided else clause.of_kind("side")
        side = nearest(clause, finding, sides, walls=walls)
        for site in _sites(clause, finding, walls):
            yield Statement(
                finding=finding.name,
                polarity=polarity,
                certainty=certainty,
                site=site,
                side=cast(Side, side.name) if side else None,
                size_mm=sizes.get(finding) if polarity == "present" else None,
                change=_change(clause, finding, lexicon),
            )


def _unseen(clause: Clause) -> Iterator[Statement]:
    """Structures that are said to be missing: "the ACL was not visualised", "an absent modiolus", "absence of ribs"."""
    for cue in clause.cues("negates_next"):
        if clause.words[cue.start] == "absence":
            yield from _missing(clause, cue)
    if clause.of_kind("finding", "normal"):
        return
    for cue in clause.cues(*_UNSEEN):
        start, end = reach(clause, cue)
        sites = [site for site in clause.of_kind("site") if start <= site.start and site.end <= end]
        if not sites and clause.words[cue.start] == "absent":
            sites = [site for site in clause.of_kind("site") if site.start == cue.end]
        for site in sites[-1:]:
            side = nearest(clause, site, clause.of_kind("side"))
            yield Statement(finding="not_seen", site=site.name, side=cast(Side, side.name) if side else None)


def _missing(clause: Clause, cue: Mention) -> Iterator[Statement]:
    """The structure that a noun says is absent, where no finding is what is absent."""
    start, end = reach(clause, cue)
    if any(start <= m.start and m.end <= end for m in clause.of_kind("finding", "normal")):
        return
    site = next((m for m in clause.of_kind("site") if start <= m.start and m.end <= end), None)
    if site:
        side = nearest(clause, site, clause.of_kind("side"))
        yield Statement(finding="not_seen", site=site.name, side=cast(Side, side.name) if side else None)


def _cues_over(clause: Clause, finding: Mention, *names: str) -> list[Mention]:
    """The cues of these names whose reach covers the finding."""
    covering = []
    for cue in clause.cues(*names):
        start, end = reach(clause, cue)
        if start <= finding.start and finding.end <= end and not _is_place(clause, cue, finding):
            covering.append(cue)
    return covering


def _is_place(clause: Clause, cue: Mention, finding: Mention) -> bool:
    """Whether the finding only locates another: in "no enhancement within the mass" the mass is present."""
    first = next((f for f in clause.of_kind("finding") if cue.end <= f.start < finding.start), None)
    if first is None:
        return False
    between = clause.words[first.end : finding.start]
    if not _AIM.isdisjoint(between):  # "no defect within the duct to suggest a stone"
        return False
    places = [i for i, word in enumerate(between[:-1]) if word in _PLACES and between[i + 1] in _DEFINITE]
    return bool(places) and _LISTS.isdisjoint(between[places[-1] :])


def _polarity(clause: Clause, finding: Mention) -> tuple[Polarity, Certainty]:
    denials = _cues_over(clause, finding, *_DENIALS)
    doubts = _cues_over(clause, finding, *_DOUBTS)
    unlikely = _cues_over(clause, finding, *_UNLIKELY)
    if finding.kind == "normal":
        is_denied = any(cue.end == finding.start and clause.words[cue.start] in _DENIES_NORMAL for cue in denials)
        return ("present" if is_denied else "absent"), ("uncertain" if doubts else "certain")
    if unlikely:
        return "absent", "uncertain"
    if denials:
        # "no findings suggestive of X" denies X outright; "probably no X" does so with doubt.
        return "absent", "uncertain" if any(doubt.start < denials[0].start for doubt in doubts) else "certain"
    return "present", "uncertain" if doubts else "certain"


def _change(clause: Clause, finding: Mention, lexicon: Lexicon) -> Change | None:
    if _cues_over(clause, finding, *_RESOLVES):
        return "resolved"
    cues = [cue for cue in _cues_over(clause, finding, *_CHANGES) if not _grades(clause, cue, finding, lexicon)]
    return cast(Change, cues[-1].name) if cues else None


def _grades(clause: Clause, cue: Mention, finding: Mention, lexicon: Lexicon) -> bool:
    """Whether a cue of change only gives a degree: "moderate increased uptake"."""
    if clause.words[cue.start : cue.end] not in _BARE:
        return False
    if finding.name in lexicon.unsized or clause.words[max(cue.start - 1, 0)] in _DEGREES:
        return True
    return any(cue.end <= other.start < finding.start for other in clause.of_kind("finding"))


def _sites(clause: Clause, finding: Mention, walls: Sequence[Mention]) -> list[str | None]:
    """The site of a finding; a statement of normality applies to every site of its clause, or to the whole study."""
    sites = clause.of_kind("site")
    if finding.kind == "normal" and finding.name == "abnormality":
        is_told = _NOT_IMAGED.isdisjoint(clause.words) and (
            not _STUDIES.isdisjoint(clause.words) or _calls_normal(clause, finding)
        )
        whole_study: list[str | None] = [None] if is_told else []
        starts = {site.start for site in sites}  # of "patellar tendon" only the tendon is named
        near = [
            site.name for site in sites if site.end not in starts and _is_called_normal(clause, finding, site, walls)
        ]
        return list(dict.fromkeys(near)) or whole_study
    site = nearest(clause, finding, sites, walls=walls)
    return [site.name if site else None]


def _calls_normal(clause: Clause, finding: Mention) -> bool:
    """Whether a clause is about what it calls normal, though no site is known: "the fat pad is normal"."""
    before = [word for word in clause.words[: finding.start] if word not in _GRADES]
    if not before or before == ["and"]:
        return finding.end < len(clause.words)
    return before[-1] in _CALLS and len(before) > 1


def _is_normal_itself(clause: Clause, finding: Mention) -> bool:
    """Whether a finding is only described as normal: "normal vascularity", or normal is only what it is beside."""
    if finding.kind == "normal":
        return clause.words[finding.start] == "normal" and clause.words[max(finding.start - 1, 0)] in _BESIDE
    before = [one for one in clause.of_kind("finding", "normal") if one.end <= finding.start][-1:]
    if not before or (before[0].kind, before[0].name) != _NORMAL:
        return False
    between = clause.words[before[0].end : finding.start]
    return len(between) <= _NORMAL_REACH and VERBS.isdisjoint(between) and _JOINS.isdisjoint(between)


def _is_called_normal(clause: Clause, finding: Mention, site: Mention, walls: Sequence[Mention]) -> bool:
    """Whether a statement of normality applies to a site: the nearest ones, or any in a list that leads up to it."""
    if nearest(clause, finding, [site], walls=walls):
        return True
    between = clause.mentions[clause.mentions.index(site) + 1 : clause.mentions.index(finding)]
    return site.end <= finding.start and all(mention.kind == "site" for mention in between)


def _sizes_by_finding(clause: Clause, lexicon: Lexicon) -> dict[Mention, float | None]:
    """Each measurement goes to one finding, the nearest; a finding keeps its largest."""
    sizes: dict[Mention, float | None] = {}
    findings = [finding for finding in clause.of_kind("finding") if finding.name not in lexicon.unsized]
    for size in clause.of_kind("size"):
        owner = nearest(clause, size, findings)
        if owner:
            sizes[owner] = max(size.size_mm or 0.0, sizes.get(owner) or 0.0)
    return sizes


def _merge(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Let a later statement complete an earlier one about the same finding if the two do not differ."""
    merged: list[Statement] = []
    for statement in statements:
        for place, earlier in enumerate(merged):
            joined = _join(earlier, statement)
            if joined:
                merged[place] = joined
                break
        else:
            merged.append(statement)
    return tuple(merged)


def _join(one: Statement, two: Statement) -> Statement | None:
    if (one.finding, one.polarity, one.certainty) != (two.finding, two.polarity, two.certainty):
        return None
    for field in ("site", "side", "size_mm", "change"):
        a, b = getattr(one, field), getattr(two, field)
        if a != b and a is not None and b is not None:
            return None
    return Statement(
        finding=one.finding,
        polarity=one.polarity,
        certainty=one.certainty,
        site=one.site or two.site,
        side=one.side or two.side,
        size_mm=one.size_mm or two.size_mm,
        change=one.change or two.change,
    )
