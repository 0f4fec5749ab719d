"""The casebook: which words go with which diagnosis in the train split, and what findings therefore speak for.

An option scores by how much likelier each term of the findings is in cases of that diagnosis than in cases at large
(naive Bayes on the terms that are there). An option the casebook does not know borrows from those spelt most like it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from medthink.baselines.words import normalise
from medthink.cases.case import Case

Row = NDArray[np.float64]

_PRIOR_CASES = 1.0
_TEMPERATURE = 3.0
_LEAST_LIKENESS = 0.3
_TERM = r"[^\W\d_]{2,}"


class Weighing(msgspec.Struct, frozen=True):
    """How findings weigh on the options: a probability each, and the terms that speak most for and against it."""

    probabilities: dict[str, float]
    speaking_for: dict[str, list[str]]
    speaking_against: dict[str, list[str]]


class Casebook:
    """The texts of the train split, by diagnosis."""

    def __init__(self, cases: Sequence[Case]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self._cases = list(cases)
        names = [diagnosis_of(case) for case in cases]
        self.diagnoses = list(dict.fromkeys(normalise(name) for name in names))
        self._names = dict(zip(map(normalise, names), names, strict=True))
        number = {diagnosis: at for at, diagnosis in enumerate(self.diagnoses)}
        self._diagnosis_of_case = np.array([number[normalise(name)] for name in names])
        self._terms = CountVectorizer(ngram_range=(1, 2), binary=True, token_pattern=_TERM, max_features=40_000)
        self._terms.fit([_told(case) for case in cases])
        self._rows = self._terms.transform([f"{_told(case)}\n{case.reference.discussion}" for case in cases])
        self._counts = self._sum_by_diagnosis()
        self._sizes = np.bincount(self._diagnosis_of_case, minlength=len(self.diagnoses)).astype(float)
        self._shares: Row = np.asarray(self._rows.mean(axis=0), dtype=float).ravel()
        self._words = self._terms.get_feature_names_out()
        self._positions = {case.id: at for at, case in enumerate(cases)}

    def name(self, diagnosis: str) -> str:
        """The diagnosis as the train split spells it."""
        return self._names[diagnosis]

    def weigh(self, findings: Sequence[str], options: Mapping[str, str], *, without: frozenset[int]) -> Weighing:
        """Weigh the options in the light of the findings; `without` names cases that may not count."""
        seen: Row = np.asarray(self._terms.transform(findings).sum(axis=0), dtype=float).ravel()
        at = np.flatnonzero(seen)
        rates = np.stack([self._rates(text, at, without) for text in options.values()])
        gains = seen[at] * (np.log(rates) - np.log(rates).mean(axis=0))
        scores = gains.sum(axis=1) / _TEMPERATURE
        powers = np.exp(scores - scores.max())
        return Weighing(
            dict(zip(options, (powers / powers.sum()).tolist(), strict=True)),
            {letter: self._strongest(at, row) for letter, row in zip(options, gains, strict=True)},
            {letter: self._strongest(at, -row) for letter, row in zip(options, gains, strict=True)},
        )

    def most_alike(self, findings: Sequence[str], diagnosis: str, *, without: frozenset[int]) -> Case | None:
        """The case of that diagnosis, or of the one spelt most like it, whose terms fit the findings best."""
        weights = self._mixture(diagnosis, without)
        if not weights.any():
            return None
        kin = [
            position
            for position in np.flatnonzero(self._diagnosis_of_case == int(np.argmax(weights)))
            if self._cases[position].id not in without
        ]
        seen = self._terms.transform([" ".join(findings)])
        shared = np.asarray((self._rows[kin] @ seen.T).todense()).ravel()
        return self._cases[kin[int(np.argmax(shared))]]

    def _rates(self, option: str, at: NDArray[Any], without: frozenset[int]) -> Row:
        """How often each term stands in cases of this diagnosis, drawn towards how often it stands in any case."""
        counts, sizes = self._without(without)
        weights = self._mixture(option, without)
        counted: Row = np.asarray(weights @ counts[:, at], dtype=float).ravel()
        size = float(weights @ sizes)
        rates: Row = (counted + _PRIOR_CASES * self._shares[at] + 1e-4) / (size + _PRIOR_CASES + 1e-4)
        return rates

    def _mixture(self, option: str, without: frozenset[int]) -> Row:
        """How much each known diagnosis tells about this option: itself alone, or those spelt like it, or none."""
        _, sizes = self._without(without)
        known = self.diagnoses.index(normalise(option)) if normalise(option) in self._names else None
        weights = np.zeros(len(self.diagnoses))
        if known is not None and sizes[known] > 0:
            weights[known] = 1.0
            return weights
        vectorizer, spellings = self._spellings
        likeness: Row = np.asarray(
            (spellings @ vectorizer.transform([normalise(option)]).T).todense(), dtype=float
        ).ravel()
        likeness[(likeness < _LEAST_LIKENESS) | (sizes == 0)] = 0
        return likeness**2

    def _without(self, case_ids: frozenset[int]) -> tuple[Any, Row]:
        held = [self._positions[case_id] for case_id in case_ids if case_id in self._positions]
        if not held:
            return self._counts, self._sizes
        counts, sizes = self._counts.tolil(), self._sizes.copy()
        for position in held:
            diagnosis = self._diagnosis_of_case[position]
            counts[diagnosis] = counts[diagnosis] - self._rows[position]
            sizes[diagnosis] -= 1
        return counts.tocsr(), sizes

    @cached_property
    def _spellings(self) -> tuple[Any, Any]:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
        return vectorizer, vectorizer.fit_transform(self.diagnoses)

    def _sum_by_diagnosis(self) -> Any:
        from scipy import sparse

        ones = np.ones(len(self._diagnosis_of_case))
        places = (self._diagnosis_of_case, np.arange(len(ones)))
        member = sparse.csr_matrix((ones, places), shape=(len(self.diagnoses), len(ones)))
        return (member @ self._rows).tocsr()

    def _strongest(self, at: NDArray[Any], gains: Row) -> list[str]:
        """Up to three terms that weigh most, none of them a part of another."""
        chosen: list[str] = []
        for position in np.argsort(-gains, kind="stable")[:12]:
            term = str(self._words[at[position]])
            if gains[position] > 0.1 and not any(term in other or other in term for other in chosen):
                chosen.append(term)
        return chosen[:3]


def diagnosis_of(case: Case) -> str:
    """The right option's text."""
    return case.question.options[case.reference.answer]


def _told(case: Case) -> str:
    return "\n".join([*(image.caption for image in case.reference.images), case.reference.findings])
