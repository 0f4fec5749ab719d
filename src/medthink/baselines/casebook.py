"""The casebook: what the train split's texts say about each diagnosis, used to score options by findings.

Cases describe what was seen (captions, findings) and what a diagnosis looks like (the discussion's imaging section,
sometimes with sentences about an alternative). A ridge regression from the first to the second lets findings in other
words reach the passages that mean the same. An option's score is how well the passages about it fit.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from medthink.baselines.passages import Passage, passages_of
from medthink.baselines.words import fit_topics, normalise
from medthink.cases.case import Case

Row = NDArray[np.float64]

_TOPICS = 256
_STIFFNESS = 0.3
_PRIOR_PASSAGES = 0.3
_TEMPERATURE = 0.07
_LEAST_LIKENESS = 0.3


class Weighing(msgspec.Struct, frozen=True):
    """The probability of each option given the findings, and the terms that count most for and against it."""

    probabilities: dict[str, float]
    speaking_for: dict[str, list[str]]
    speaking_against: dict[str, list[str]]


class Casebook:
    """The texts of the train split, by diagnosis."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = list(cases)
        self.diagnoses = list(dict.fromkeys(diagnosis_of(case) for case in cases))
        passages = [passage for case in cases for passage in passages_of(case)]
        self._terms = _vectorizer()
        # Rarity is counted over what was right: sentences on rivals repeat the very signs that decide.
        self._terms.fit([passage.text for passage in passages if passage.is_own])
        self._rows = self._terms.transform([passage.text for passage in passages])
        self._words = self._terms.get_feature_names_out()
        self._about = _group(passages)
        own = [at for at, passage in enumerate(passages) if passage.is_own]
        self._average: Row = np.asarray(self._rows[own].mean(axis=0), dtype=float).ravel()
        self._seen = Seen([_told(case) for case in cases])
        self._map = self._seen.regress(self._rows[own], self._average)

    def weigh(self, findings: Sequence[str], options: Mapping[str, str]) -> Weighing:
        """The probability of each option given the findings."""
        expected: Row = self._seen.place(findings) @ self._map
        profiles = np.stack([self._profile(text) for text in options.values()])
        gains = (profiles - profiles.mean(axis=0)) * expected
        size = float(np.linalg.norm(expected) * np.linalg.norm(profiles, axis=1).mean())
        powers = np.exp(gains.sum(axis=1) / max(size, 1e-9) / _TEMPERATURE)
        return Weighing(
            dict(zip(options, (powers / powers.sum()).tolist(), strict=True)),
            {letter: self._strongest(row) for letter, row in zip(options, gains, strict=True)},
            {letter: self._strongest(-row) for letter, row in zip(options, gains, strict=True)},
        )

    def most_alike(self, findings: Sequence[str], diagnosis: str) -> Case | None:
        """The case of that diagnosis whose findings are most like these; None where there is no such case."""
        wanted = normalise(diagnosis)
        kin = [at for at, case in enumerate(self._cases) if normalise(diagnosis_of(case)) == wanted]
        if not kin:
            return None
        nearness = self._seen.places[kin] @ self._seen.place(findings)
        return self._cases[kin[int(np.argmax(nearness))]]

    def _profile(self, option: str) -> Row:
        """The mean term weights of passages about this option, shrunk towards the mean of all passages."""
        rows, weights = self._passages_about(option)
        counted: Row = np.asarray(weights @ self._rows[rows], dtype=float).ravel()
        profile: Row = (counted + _PRIOR_PASSAGES * self._average) / (weights.sum() + _PRIOR_PASSAGES)
        return profile

    def _passages_about(self, option: str) -> tuple[list[int], Row]:
        """The passages about the option; for an unknown one, those about similarly spelt options, with less weight."""
        rows = self._about.get(normalise(option))
        if rows is not None:
            return rows, np.ones(len(rows))
        vectorizer, names, spellings = self._spellings
        likeness: Row = np.asarray((spellings @ vectorizer.transform([normalise(option)]).T).todense()).ravel()
        kin = [at for at in np.flatnonzero(likeness >= _LEAST_LIKENESS)]
        found = [(row, likeness[at] ** 2) for at in kin for row in self._about[names[at]]]
        return [row for row, _ in found], np.array([weight for _, weight in found], dtype=float)

    @cached_property
    def _spellings(self) -> tuple[Any, list[str], Any]:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer, names = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)), list(self._about)
        return vectorizer, names, vectorizer.fit_transform(names)

    def _strongest(self, gains: Row) -> list[str]:
        """Up to three terms of the largest weight, none contained in another."""
        chosen: list[str] = []
        for at in np.argsort(-gains, kind="stable")[:12]:
            term = str(self._words[at])
            if gains[at] > 0 and not any(term in other or other in term for other in chosen):
                chosen.append(term)
        return chosen[:3]


class Seen:
    """What was seen in each case, as a vector of topics."""

    def __init__(self, texts: list[str]) -> None:
        self._terms = _vectorizer()
        self._topics, placed = fit_topics(self._terms.fit_transform(texts), _TOPICS)
        self._mean: Row = placed.mean(axis=0)
        self.places: Row = placed - self._mean

    def place(self, findings: Sequence[str]) -> Row:
        """The topic vector of these findings."""
        placed: Row = self._topics.transform(self._terms.transform(["\n".join(findings)]))[0] - self._mean
        return placed

    def regress(self, rows: Any, average: Row) -> Row:
        """The ridge regression from topic vectors to the rows' deviation from their average."""
        spread = self.places.T @ self.places
        spread[np.diag_indices_from(spread)] += _STIFFNESS
        target = (rows.T @ self.places).T - np.outer(self.places.sum(axis=0), average)
        mapping: Row = np.linalg.solve(spread, target)
        return mapping


def diagnosis_of(case: Case) -> str:
    """The right option's text."""
    return case.question.options[case.reference.answer]


def _told(case: Case) -> str:
    return "\n".join([*(image.caption for image in case.reference.images), case.reference.findings])


def _group(passages: Sequence[Passage]) -> dict[str, list[int]]:
    about: dict[str, list[int]] = {}
    for at, passage in enumerate(passages):
        about.setdefault(passage.diagnosis, []).append(at)
    return about


def _vectorizer() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"[^\W\d_]{2,}", sublinear_tf=True, max_features=20_000)
