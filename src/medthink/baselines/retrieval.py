"""The retrieval baseline: it describes an image with the captions of similar ones, and scores options by those words.

It uses nothing but images, findings and options. Without an image or a finding it has no evidence, and says so.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from medthink.baselines.baseline import BaselineChoice, TrainedOnce, random_letter, remember_nothing, reply, steps
from medthink.baselines.guesser import most_probable, probabilities_text
from medthink.baselines.image_features import Vector, image_features, readable_image_features
from medthink.baselines.text_features import Passage, fit_topics, normalise, passages_of, sections_of, tokenise
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Image, Question
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.models.request import Reply
from medthink.workflow.ask import Prompt, PromptKind

_MOST_IMAGES = 16_000
_IMAGE_TOPICS = 128
_IMAGE_STIFFNESS = 0.5
_NEIGHBOURS = 5


class SimilarImage(NamedTuple):
    """A similar image of the index; `nearness` is the cosine similarity, at most 1."""

    caption: str
    case_id: int
    nearness: float


class _Leaf(NamedTuple):
    image: Image
    caption: str
    case_id: int


class CaptionIndex:
    """The captioned images of the train split, up to 16,000."""

    def __init__(self, cases: Sequence[Case]) -> None:
        leaves = _gather(cases)
        looks = readable_image_features([leaf.image for leaf in leaves])
        readable = [(leaf, look) for leaf, look in zip(leaves, looks, strict=True) if look is not None]
        if not readable:
            raise UsageError(
                "baseline/retrieval learns from the images of the train split, and none can be read",
                remedy="medthink data check --images says what is wrong",
            )
        self._leaves = [leaf for leaf, _ in readable]
        matrix = np.stack([look for _, look in readable])
        self._mean = matrix.mean(axis=0)
        topics = _topics_of([leaf.caption for leaf in self._leaves])
        self._map, predicted = _fit_ridge(matrix - self._mean, topics)
        self._places = _unit_rows(predicted)

    def __len__(self) -> int:
        return len(self._leaves)

    def nearest(self, image: Image) -> list[SimilarImage]:
        """The most similar images, most similar first."""
        place = _unit_rows((image_features(image) - self._mean)[None] @ self._map)[0]
        nearness = self._places @ place
        order = np.argsort(-nearness, kind="stable")[:_NEIGHBOURS]
        return [SimilarImage(self._leaves[at].caption, self._leaves[at].case_id, float(nearness[at])) for at in order]

    def caption(self, image: Image) -> str:
        """Of the neighbours' captions, the one that shares most words with the others."""
        near = self.nearest(image)
        bags = [set(tokenise(neighbour.caption)) for neighbour in near]
        votes = [(bag, max(neighbour.nearness, 0.0) ** 2) for bag, neighbour in zip(bags, near, strict=True)]
        support = [sum(weight * len(bag & other) / max(1, len(bag | other)) for other, weight in votes) for bag in bags]
        return near[int(np.argmax(support))].caption


def _gather(cases: Sequence[Case]) -> list[_Leaf]:
    """The images that have a caption, case by case in a seeded order until the index is full."""
    leaves: list[_Leaf] = []
    for case in sorted(cases, key=lambda case: seed_from("album", case.id)):
        pairs = zip(case.question.images, case.reference.images, strict=True)
        leaves += [_Leaf(image, known.caption.strip(), case.id) for image, known in pairs if known.caption.strip()]
        if len(leaves) >= _MOST_IMAGES:
            break
    return leaves[:_MOST_IMAGES]


def _topics_of(captions: list[str]) -> Vector:
    """Captions as topic vectors: TF-IDF of words and word pairs, reduced by a truncated SVD."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    rare = 2 if len(captions) >= 50 else 1
    counted = TfidfVectorizer(
        ngram_range=(1, 2), min_df=rare, max_features=8000, sublinear_tf=True, token_pattern=r"[^\W\d_]{2,}"
    ).fit_transform(captions)
    placed: Vector = fit_topics(counted, _IMAGE_TOPICS)[1]
    return placed.astype(np.float32)


def _fit_ridge(looks: Vector, topics: Vector) -> tuple[Vector, Vector]:
    """The ridge regression from features to topics, and its leave-one-out prediction for each image."""
    spread = looks.T @ looks
    spread[np.diag_indices_from(spread)] += _IMAGE_STIFFNESS
    inverse = np.linalg.inv(spread.astype(np.float64))
    mapping = inverse @ (looks.T @ (topics - topics.mean(axis=0))).astype(np.float64)
    fitted = looks @ mapping
    leverage = np.minimum(np.einsum("ij,jk,ik->i", looks, inverse, looks, optimize=True), 0.999)[:, None]
    centred = topics - topics.mean(axis=0)
    without = (fitted - leverage * centred) / (1 - leverage)
    return mapping.astype(np.float32), without.astype(np.float32)


def _unit_rows(matrix: Vector) -> Vector:
    rows: Vector = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-6)
    return rows


Row = NDArray[np.float64]

_TOPICS = 256
_STIFFNESS = 0.3
_PRIOR_PASSAGES = 0.3
_TEMPERATURE = 0.07
_LEAST_LIKENESS = 0.3


class OptionScores(msgspec.Struct, frozen=True):
    """The probability of each option given the findings, and the terms that count most for and against it."""

    probabilities: dict[str, float]
    speaking_for: dict[str, list[str]]
    speaking_against: dict[str, list[str]]


class DiagnosisIndex:
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
        self._seen = CaseTopics([_told(case) for case in cases])
        self._map = self._seen.regress(self._rows[own], self._average)

    def weigh(self, findings: Sequence[str], options: Mapping[str, str]) -> OptionScores:
        """The probability of each option given the findings."""
        expected: Row = self._seen.place(findings) @ self._map
        profiles = np.stack([self._profile(text) for text in options.values()])
        gains = (profiles - profiles.mean(axis=0)) * expected
        size = float(np.linalg.norm(expected) * np.linalg.norm(profiles, axis=1).mean())
        powers = np.exp(gains.sum(axis=1) / max(size, 1e-9) / _TEMPERATURE)
        return OptionScores(
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


class CaseTopics:
    """The topics of each case's findings, as vectors."""

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


_NAME = "retrieval"
_NOTHING_SEEN = "No image was shown."
_UNKNOWN = "The train split has nothing on this."


class RetrievalIndex(msgspec.Struct, frozen=True):
    """The index over the train split: images with their captions, and texts by diagnosis."""

    album: CaptionIndex
    casebook: DiagnosisIndex


class RetrievalBaseline:
    """Answers from the most similar images and texts of the train split."""

    name = _NAME

    def __init__(self, lessons: TrainedOnce[RetrievalIndex]) -> None:
        self._lessons = lessons

    def answer(self, prompt: Prompt, *, sample: int) -> Reply:
        """Answer any kind of prompt."""
        return reply(self.name, self._content(prompt, sample))

    def refuse(self, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """It answers any kind of prompt, with options or without."""

    def _content(self, prompt: Prompt, sample: int) -> dict[str, Any]:
        question = prompt.question
        match prompt.kind:
            case "findings":
                return {"findings": self._describe([prompt.image or question.images[0]], question)[0]}
            case "summary":
                return {"summary": join_findings(prompt.findings or self._describe(question.images, question))}
            case "twi":
                findings = self._describe(question.images, question)
                pick = self._pick(findings, question, sample)
                return steps(list(findings), join_findings(findings), pick.explanation, pick.letter)
            case "discussion":
                return self._discuss(self._evidence(prompt), question, sample)
        if (nothing := remember_nothing(prompt)) is not None:
            return nothing
        pick = self._pick(self._evidence(prompt), question, sample)
        return {"explanation": pick.explanation, "answer": pick.letter}

    def _evidence(self, prompt: Prompt) -> tuple[str, ...]:
        """Findings or a summary from an earlier step or an expert, else the baseline's own descriptions."""
        if prompt.findings:
            return prompt.findings
        return (prompt.summary,) if prompt.summary else self._describe(prompt.question.images, prompt.question)

    def _describe(self, images: Sequence[Image], question: Question) -> tuple[str, ...]:
        return tuple(self._lessons.recall(question).album.caption(image) for image in images)

    def _pick(self, evidence: tuple[str, ...], question: Question, sample: int) -> BaselineChoice:
        """The option (or, where none are shown, the diagnosis) that the evidence supports most."""
        if not evidence:
            return self._pick_blindly(question, sample)
        casebook = self._lessons.recall(question).casebook
        options = question.options or {name: name for name in casebook.diagnoses}
        weighing = casebook.weigh(evidence, options)
        return BaselineChoice(most_probable(weighing.probabilities), _explain(weighing, options))

    def _pick_blindly(self, question: Question, sample: int) -> BaselineChoice:
        if question.options:
            return BaselineChoice(
                random_letter(question, sample), f"{_NOTHING_SEEN} Without evidence, drawn at random."
            )
        diagnoses = self._lessons.recall(question).casebook.diagnoses
        name = diagnoses[seed_from("random diagnosis", sample, question.history) % len(diagnoses)]
        return BaselineChoice(name, f"{_NOTHING_SEEN} Without evidence, drawn at random from the train split.")

    def _discuss(self, evidence: tuple[str, ...], question: Question, sample: int) -> dict[str, Any]:
        pick = self._pick(evidence, question, sample)
        diagnosis = question.options.get(pick.letter, pick.letter)
        alike = self._lessons.recall(question).casebook.most_alike(evidence, diagnosis)
        return dict(_write_sections(diagnosis, join_findings(evidence), question, alike))


def retrieval_baseline(benchmark: Benchmark) -> RetrievalBaseline:
    """The baseline over this benchmark's train split."""
    return RetrievalBaseline(
        TrainedOnce(benchmark, _NAME, lambda cases: RetrievalIndex(CaptionIndex(cases), DiagnosisIndex(cases)))
    )


def join_findings(findings: Sequence[str]) -> str:
    """The findings as one string, each once."""
    if not findings:
        return _NOTHING_SEEN
    distinct = dict.fromkeys(finding.strip() for finding in findings)
    return " ".join(finding if finding.endswith((".", "!", "?")) else f"{finding}." for finding in distinct)


def _explain(weighing: OptionScores, options: dict[str, str]) -> str:
    """The terms for the option chosen and against the next four."""
    ranked = sorted(weighing.probabilities, key=lambda letter: -weighing.probabilities[letter])
    chosen, others = ranked[0], ranked[1:5]
    lines = [f"{options[chosen]}: {_say_terms('the findings fit', weighing.speaking_for[chosen])}."]
    lines += [
        f"Not {options[other]}: {_say_terms('it does not fit', weighing.speaking_against[other])}." for other in others
    ]
    shown = {letter: weighing.probabilities[letter] for letter in ranked[:5]}
    return " ".join([*lines, f"Probabilities: {probabilities_text(shown)}."])


def _say_terms(verb: str, terms: list[str]) -> str:
    return f"{verb} ({', '.join(terms)})" if terms else "no term of the findings decides"


def _write_sections(diagnosis: str, findings: str, question: Question, alike: Case | None) -> dict[str, str]:
    """The six sections for this diagnosis, by name; `alike` is the case whose text is reused."""
    present = {
        "clinical_perspective": question.history or "No history was given.",
        "imaging_perspective": findings,
        "outcome": f"The most likely diagnosis is {diagnosis}.",
    }
    known = _known_sections(alike)
    return {name: " ".join(filter(None, (present.get(name), known[name]))) or _UNKNOWN for name in known}


def _known_sections(case: Case | None) -> dict[str, str]:
    """The sections of the case's own discussion; one without headings is all background."""
    discussion = "" if case is None else case.reference.discussion.strip()
    sections = sections_of(discussion)
    return sections if any(sections.values()) else sections | {"background": discussion}
