"""Candidates for the ICD-10 category of a diagnosis: from two tables and from the classification's own terms."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from medthink.curate.icd_tables import TableHit, listed_categories, tumour_categories
from medthink.curate.icd_terms import FoundTerm, term_index
from medthink.curate.names import QUALIFIERS, head_of, other_names, without_brackets, words_of

CandidateSource = Literal["same term", "names", "tumours", "terms"]
MOST = 20
_SAME = 0.999
_FIRST_TERMS, _MOST_LISTED = 8, 8
# Words a name may have besides those of an entry and still mean the same.
_TAILS = frozenset(["disease", "syndrome", "lesion", "tumor", "disorder", "type", "of", "the"])


_NOT_ONE = re.compile(
    r"\b(?:mimic\w*|simulating|pseudo\w*|previous|suspected|versus|vs|without|no)\b|-like\b", re.IGNORECASE
)


class IcdCandidate(NamedTuple):
    """A candidate category, and where it comes from."""

    category: str
    source: CandidateSource


class Coding(NamedTuple):
    """At most twenty candidates, the likeliest first, and the one the rules are sure of, if any, with the rule."""

    candidates: tuple[IcdCandidate, ...]
    settled: str
    rule: str


def find_coding(diagnosis: str, *, aliases: Iterable[str] = (), context: str = "") -> Coding:
    """The candidates for a diagnosis; `context` may name the site of a tumour."""
    names = list(dict.fromkeys((diagnosis, without_brackets(diagnosis), head_of(diagnosis), *other_names(diagnosis))))
    terms = term_index().search(names, MOST)
    names += aliases
    candidates = _merge(terms, listed_categories(names), tumour_categories(names, context))
    sure = {rule: category for rule, category in _sure(diagnosis, terms).items() if category}
    # If two rules are sure of different categories, neither is certain.
    rule = next(iter(sure), "") if len(set(sure.values())) == 1 else ""
    return Coding(tuple(candidates), sure.get(rule, ""), rule)


def _merge(terms: Sequence[FoundTerm], listed: list[TableHit], tumours: list[TableHit]) -> list[IcdCandidate]:
    """Exact terms first, then what the tables are sure of, then the most similar terms, then the rest."""
    same = [IcdCandidate(term.category, "same term") for term in terms if term.likeness >= _SAME]
    names = [IcdCandidate(hit.category, "names") for hit in listed]
    sure = [IcdCandidate(hit.category, "tumours") for hit in tumours if hit.is_sure]
    unsure = [IcdCandidate(hit.category, "tumours") for hit in tumours if not hit.is_sure]
    likest = [IcdCandidate(term.category, "terms") for term in terms]
    order = [*same, *(names + sure)[:_MOST_LISTED], *likest[:_FIRST_TERMS], *unsure, *names, *sure, *likest]
    kept: dict[str, IcdCandidate] = {}
    for candidate in order:
        kept.setdefault(candidate.category, candidate)
    return list(kept.values())[:MOST]


def _sure(diagnosis: str, terms: Sequence[FoundTerm]) -> dict[str, str]:
    """The category given by each rule that may decide alone, or "" if it is not sure."""
    same = {term.category for term in terms if term.likeness >= _SAME}
    # A tumour mentioned only in the clause after the name is another one, or none.
    is_tumour = bool(tumour_categories([head_of(diagnosis)], "")) and not _NOT_ONE.search(diagnosis)
    tumours = tumour_categories([diagnosis], "") if is_tumour else []
    sites = {hit.category for hit in tumours} if all(hit.is_sure for hit in tumours) else set()
    return {"same term": _only(same), "table of names": _whole_name(diagnosis), "table of tumours": _only(sites)}


def _whole_name(diagnosis: str) -> str:
    """The category of a table entry that is the whole diagnosis and occurs only once."""
    head = head_of(diagnosis)
    hits = listed_categories([head])
    longest = [hit for hit in hits if hit.words == hits[0].words]
    telling = [word for word in words_of(head) if word not in QUALIFIERS | _TAILS]
    is_whole = bool(hits) and hits[0].words >= len(telling)
    return _only({hit.category for hit in longest}) if is_whole else ""


def _only(categories: set[str]) -> str:
    return next(iter(categories)) if len(categories) == 1 else ""
