"""Feature vectors of options, from the inputs that a guesser may see and nothing else."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medthink.baselines import Inputs
from medthink.baselines.image_features import Vector, case_image_features
from medthink.baselines.text_features import hash_word, normalise, tokenise
from medthink.cases.case import Question

_COUNTED = (
    re.compile(r","),
    re.compile(r"[()\[\]]"),
    re.compile(r"[-–—/]"),
    re.compile(r"[:;]"),
    re.compile(r"\d"),
    re.compile(r"[A-Z]{2,}"),
    re.compile(r"[A-Z][a-z]"),
    re.compile(r"\b(?:with|and|secondary|due|of|in|complicated|associated)\b", re.IGNORECASE),
    re.compile(r"\b(?:acute|chronic|bilateral|left|right|multiple|primary|type|stage|grade)\b", re.IGNORECASE),
    re.compile(r"[^\x00-\x7f]"),
    re.compile(r"\.$"),
)
SHAPE_SIZE = 2 + len(_COUNTED) + 5 + 2


def shapes_of(texts: list[str]) -> NDArray[np.float32]:
    """One row per option, every column relative to the other options of the same case."""
    counts = np.array([_count(text) for text in texts], dtype=np.float32)
    lengths = np.array([len(text.strip()) for text in texts], dtype=np.float32)
    spread = counts.std(axis=0)
    relative = (counts - counts.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return np.hstack([relative, _length_ranks(lengths), _likeness(texts)]).astype(np.float32)


def _count(text: str) -> list[float]:
    length, words = np.log1p(len(text.strip())), np.log1p(len(tokenise(text)))
    return [float(length), float(words), *(float(len(pattern.findall(text.strip()))) for pattern in _COUNTED)]


def _length_ranks(lengths: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rank of the length from −1 to 1, whether longest or shortest, and by how much."""
    longer = (lengths[:, None] > lengths[None, :]).sum(axis=1)
    shorter = (lengths[:, None] < lengths[None, :]).sum(axis=1)
    rank = (longer - shorter) / max(1, len(lengths) - 1)
    columns = [
        rank,
        shorter == 0,
        longer == 0,
        lengths / lengths.max(initial=1),
        lengths.min(initial=1) / (1 + lengths),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _likeness(texts: list[str]) -> NDArray[np.float32]:
    """How many words an option shares with the others: distractors are often variations on the right one."""
    bags = [set(tokenise(text)) for text in texts]
    shared = np.array([[len(one & other) / max(1, len(one | other)) for other in bags] for one in bags])
    np.fill_diagonal(shared, 0)
    return np.stack([shared.sum(axis=1) / max(1, len(texts) - 1), shared.max(axis=1)], axis=1).astype(np.float32)


Matrix = Any  # scipy's sparse matrices, which carry no types here
Numbers = NDArray[np.uint64]
# What is crossed with an option's words: a number for each cue, and its weight.
Weights = tuple[Numbers, NDArray[np.float32]]

_BINS = 1 << 18
_MOST_HISTORY_WORDS = 32
_MOST_OPTION_WORDS = 12
_COMMONEST_SHARE = 0.2
_AXES = 32
_MIX = np.uint64(0x9E3779B97F4A7C15)


class OptionEncoder:
    """Learns its vocabularies from training questions, then turns any question's options into feature vectors."""

    def __init__(self, inputs: Inputs, questions: Sequence[Question]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.inputs: Inputs = inputs
        texts = [text for question in questions for text in question.options.values()]
        rare = 2 if len(questions) >= 50 else 1
        self._spelling = TfidfVectorizer(
            analyzer="char_wb",
            ngram_range=(3, 4),
            min_df=rare,
            max_features=30_000,
            sublinear_tf=True,
            dtype=np.float32,
        )
        self._spelling.fit(texts)
        self._common_words = _count_cases(question.history for question in questions) if _sees_history(inputs) else {}
        self._cases = len(questions)
        self._looks = ImagePca.learn(questions) if _sees_images(inputs) else None

    def encode(self, questions: Sequence[Question]) -> Matrix:
        """One row per option, question after question."""
        from scipy import sparse

        texts = [list(question.options.values()) for question in questions]
        blocks = [
            sparse.csr_matrix(np.vstack([shapes_of(options) for options in texts])),
            self._spelling.transform([text for options in texts for text in options]),
        ]
        if _sees_history(self.inputs):
            pairs = zip(questions, texts, strict=True)
            blocks.append(sparse.csr_matrix(np.vstack([_overlap(one.history, options) for one, options in pairs])))
            blocks.append(self._cross(texts, [self._history_words(question.history) for question in questions]))
        if self._looks is not None:
            blocks.append(self._cross(texts, self._looks.of(questions)))
        return sparse.hstack(blocks, format="csr")

    def _history_words(self, history: str) -> Weights:
        """The history's words that occur in several training cases but not in most, rarest first."""
        most = max(2, int(self._cases * _COMMONEST_SHARE))
        known = {word: self._common_words.get(word, 0) for word in tokenise(history)}
        kept = sorted(
            (word for word, count in known.items() if 2 <= count <= most), key=lambda word: (known[word], word)
        )
        numbers = np.array([hash_word(word) for word in kept[:_MOST_HISTORY_WORDS]], dtype=np.uint64)
        return numbers, np.full(len(numbers), 1 / np.sqrt(max(1, len(numbers))), dtype=np.float32)

    def _cross(self, texts: list[list[str]], cues: Sequence[Weights]) -> Matrix:
        """Every cue of a case crossed with every word of an option, hashed into bins."""
        from scipy import sparse

        columns, values, ends = [], [], [0]
        for options, (numbers, weights) in zip(texts, cues, strict=True):
            for text in options:
                option = _option_numbers(text)
                pairs = (numbers[:, None] * _MIX) ^ (option[None, :] * (_MIX >> np.uint64(1)))
                columns.append(((pairs >> np.uint64(20)) % np.uint64(_BINS)).astype(np.int32).ravel())
                values.append(np.repeat(weights / np.sqrt(len(option)), len(option)))
                ends.append(ends[-1] + pairs.size)
        data = (np.concatenate(values).astype(np.float32), np.concatenate(columns), np.array(ends))
        crossed = sparse.csr_matrix(data, shape=(len(ends) - 1, _BINS))
        crossed.sum_duplicates()
        return crossed


class ImagePca:
    """Image features of a case, reduced by a PCA of the training images, whose own are held through the fit."""

    def __init__(self, questions: Sequence[Question], looks: Sequence[Vector | None]) -> None:
        from sklearn.decomposition import PCA

        self._held = {id(question): (question, look) for question, look in zip(questions, looks, strict=True)}
        matrix = np.stack([look for look in looks if look is not None])
        self._axes = PCA(min(_AXES, len(matrix) - 1), svd_solver="randomized", random_state=0)
        # Every axis counts alike; one along which the images do not differ stays out of it.
        self._scale = np.maximum(self._axes.fit_transform(matrix).std(axis=0), 1e-3) * np.sqrt(_AXES)
        self._numbers = np.array([hash_word(f"look {axis}") for axis in range(len(self._scale))], dtype=np.uint64)

    @classmethod
    def learn(cls, questions: Sequence[Question]) -> "ImagePca | None":
        """Fit on the questions' images; None if there are fewer than two."""
        looks = case_image_features(questions)
        return cls(questions, looks) if sum(look is not None for look in looks) > 1 else None

    def of(self, questions: Sequence[Question]) -> list[Weights]:
        """For each question one cue per principal component; none where no image is shown."""
        none = (self._numbers[:0], np.zeros(0, dtype=np.float32))
        known = [self._held.get(id(question)) for question in questions]
        new = iter(case_image_features([one for one, held in zip(questions, known, strict=True) if held is None]))
        looks = [next(new) if held is None else held[1] for held in known]
        return [none if look is None else self._cues(look) for look in looks]

    def _cues(self, look: Vector) -> Weights:
        values = self._axes.transform(look[None])[0] / self._scale
        return self._numbers, values.astype(np.float32)


def _option_numbers(text: str) -> Numbers:
    """A number for each of the option's words, and one for the option as a whole."""
    words = list(dict.fromkeys(tokenise(text)))[:_MOST_OPTION_WORDS]
    return np.array([hash_word(word) for word in [*words, f"= {normalise(text)}"]], dtype=np.uint64)


def _overlap(history: str, options: list[str]) -> NDArray[np.float32]:
    """How much of each option occurs in the history, relative to the other options."""
    told = set(tokenise(history))
    whole = f" {normalise(history)} "
    rows = [
        [sum(word in told for word in words) / max(1, len(words)), float(f" {' '.join(words)} " in whole)]
        for words in map(tokenise, options)
    ]
    counts = np.array(rows, dtype=np.float32)
    relative: NDArray[np.float32] = counts - counts.mean(axis=0)
    return relative


def _count_cases(histories: Iterable[str]) -> dict[str, int]:
    return dict(Counter(word for history in histories for word in set(tokenise(history))))


def _sees_history(inputs: Inputs) -> bool:
    return inputs in ("question", "all")


def _sees_images(inputs: Inputs) -> bool:
    return inputs in ("images", "all")
