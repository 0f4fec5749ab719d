"""ROUGE-1, -2, -L and -Lsum, equal to `rouge-score` 0.1.2 on every text, and much faster.

Range 0 to 1, higher is better. A text without a Latin letter or digit has no words and scores 0, even against
itself; so do one-word texts under ROUGE-2. ROUGE does not see negation or side.

Why it is fast: words are split by one byte translation; a word is stemmed and numbered once; the longest
common subsequence is `rapidfuzz`'s, and also counts shared words, once both texts are sorted; bigrams are counted
only when both texts repeat one.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from rapidfuzz.distance.LCSseq import similarity as lcs_length

from medthink.core.errors import UsageError
from medthink.metrics.words import stem as porter_stem

RougeKind = Literal["rouge1", "rouge2", "rougeL", "rougeLsum"]
KINDS: tuple[RougeKind, ...] = get_args(RougeKind)

_SPACED = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_STEMMED_FROM = 4


class RougeScore(NamedTuple):
    """How much of the candidate is in the reference (precision), of the reference in the candidate, and F1."""

    precision: float
    recall: float
    f1: float


Overlaps = dict[RougeKind, RougeScore]
NO_OVERLAP = RougeScore(0.0, 0.0, 0.0)


class Rouge:
    """A scorer that caches the words it has seen, so that each is stemmed once."""

    def __init__(self, kinds: Sequence[RougeKind] = KINDS, *, stem: bool = True) -> None:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise UsageError(f"unknown ROUGE: {unknown[0]}", remedy=f"choose from {', '.join(KINDS)}")
        self.kinds = tuple(kinds)
        self._number = _WordNumbers(stem).__getitem__

    def score(self, reference: str, candidate: str) -> Overlaps:
        """The overlaps of one candidate with its reference."""
        scores: Overlaps = {}
        if self.kinds != ("rougeLsum",):
            scores.update(self._score_whole(self._words(reference), self._words(candidate)))
        if "rougeLsum" in self.kinds:
            scores["rougeLsum"] = self._score_lines(reference, candidate, scores.get("rougeL"))
        return scores

    def score_all(self, references: Iterable[str], candidates: Iterable[str]) -> list[Overlaps]:
        """The overlaps of every candidate with the reference at the same position."""
        return [self.score(ref, cand) for ref, cand in zip(references, candidates, strict=True)]

    def _score_whole(self, ref: list[int], cand: list[int]) -> Overlaps:
        scores: Overlaps = {}
        if "rouge1" in self.kinds:
            scores["rouge1"] = _overlap(_shared_words(ref, cand), len(ref), len(cand))
        if "rouge2" in self.kinds:
            scores["rouge2"] = _overlap(_shared_pairs(ref, cand), len(ref) - 1, len(cand) - 1)
        if "rougeL" in self.kinds:
            scores["rougeL"] = _overlap(lcs_length(ref, cand), len(ref), len(cand))
        return scores

    def _score_lines(self, reference: str, candidate: str, whole: RougeScore | None) -> RougeScore:
        """ROUGE-Lsum; of two texts of one line each it is ROUGE-L."""
        if whole is not None and "\n" not in reference and "\n" not in candidate:
            return whole
        return _summary_overlap(self._lines(reference), self._lines(candidate))

    def _words(self, text: str) -> list[int]:
        return list(map(self._number, text.lower().encode("ascii", "replace").translate(_SPACED).split()))

    def _lines(self, text: str) -> list[list[int]]:
        return [self._words(line) for line in text.split("\n") if line]


class _WordNumbers(dict[bytes, int]):
    """Word to number; words with the same stem share a number."""

    def __init__(self, stem: bool) -> None:
        super().__init__()
        self._stem = stem
        self._by_stem: dict[bytes, int] = {}

    def __missing__(self, word: bytes) -> int:
        root = word
        if self._stem and len(word) >= _STEMMED_FROM:
            root = porter_stem(word.decode("ascii")).encode("ascii")
        self[word] = number = self._by_stem.setdefault(root, len(self._by_stem))
        return number


def _overlap(hits: int, in_reference: int, in_candidate: int) -> RougeScore:
    if not hits:
        return NO_OVERLAP
    precision = hits / in_candidate
    recall = hits / in_reference
    return RougeScore(precision, recall, 2 * precision * recall / (precision + recall))


def _shared_words(ref: list[int], cand: list[int]) -> int:
    """The size of the intersection of two multisets: of two sorted sequences it is the LCS."""
    return lcs_length(sorted(ref), sorted(cand))


def _shared_pairs(ref: list[int], cand: list[int]) -> int:
    """The size of the intersection of both texts' bigrams as multisets."""
    ref_pairs = set(pairwise(ref))
    shared = ref_pairs.intersection(pairwise(cand))
    if len(ref_pairs) == len(ref) - 1:
        return len(shared)  # the reference repeats none, so none counts twice
    in_ref = list(filter(shared.__contains__, pairwise(ref)))
    in_cand = list(filter(shared.__contains__, pairwise(cand)))
    if len(shared) in (len(in_ref), len(in_cand)):
        return len(shared)
    numbers = {pair: number for number, pair in enumerate(shared)}.__getitem__
    return _shared_words(list(map(numbers, in_ref)), list(map(numbers, in_cand)))


def _summary_overlap(ref_lines: list[list[int]], cand_lines: list[list[int]]) -> RougeScore:
    """Union-LCS over lines: each reference line against all candidate lines, no word counted twice."""
    in_reference = sum(map(len, ref_lines))
    in_candidate = sum(map(len, cand_lines))
    left_ref = Counter(word for line in ref_lines for word in line)
    left_cand = Counter(word for line in cand_lines for word in line)
    hits = 0
    for line in ref_lines:
        matched = set().union(*(_lcs_places(line, other) for other in cand_lines))
        for place in sorted(matched):
            word = line[place]
            if left_cand[word] > 0 and left_ref[word] > 0:
                hits += 1
                left_cand[word] -= 1
                left_ref[word] -= 1
    return _overlap(hits, in_reference, in_candidate)


def _lcs_places(ref: list[int], cand: list[int]) -> set[int]:
    """The positions in the reference of the longest common subsequence that `rouge-score` would choose.

    `rows[i]` has a zero bit at j where the LCS of ref[:i] and cand[:j+1] is longer than that with cand[:j], so any
    entry of the usual table is a count of zero bits.
    """
    rows = _lcs_rows(ref, cand)
    places: set[int] = set()
    i, j = len(ref), len(cand)
    while i and j:
        if ref[i - 1] == cand[j - 1]:
            i, j = i - 1, j - 1
            places.add(i)
        elif _zeros(rows[i], j - 1) > _zeros(rows[i - 1], j):
            j -= 1
        else:
            i -= 1
    return places


def _lcs_rows(ref: list[int], cand: list[int]) -> list[int]:
    places = dict.fromkeys(ref, 0)
    for place, word in enumerate(cand):
        if word in places:
            places[word] |= 1 << place
    full = (1 << len(cand)) - 1
    rows = [full]
    for word in ref:
        row = rows[-1]
        hit = row & places[word]
        rows.append(((row + hit) | (row - hit)) & full)
    return rows


def _zeros(row: int, width: int) -> int:
    return width - (row & ((1 << width) - 1)).bit_count()


def bleu2(reference: str, candidate: str) -> float:
    """BLEU-2 of the candidate against its reference."""
    ref, cand = _words(reference), _words(candidate)
    unigrams = _clipped_matches(ref, cand)
    if not unigrams:
        return 0.0
    bigrams = _clipped_matches(pairwise(ref), pairwise(cand))
    precision_1 = unigrams / len(cand)
    precision_2 = (bigrams or 0.1) / max(1, len(cand) - 1)
    brevity = 1.0 if len(cand) > len(ref) else math.exp(1 - len(ref) / len(cand))
    return brevity * math.exp(0.5 * math.log(precision_1) + 0.5 * math.log(precision_2))


def _words(text: str) -> list[str]:
    return [word for word in text.lower().replace(".", " .").split(" ") if word]


def _clipped_matches(ref: Iterable[object], cand: Iterable[object]) -> int:
    """The size of the intersection of two multisets."""
    return (Counter(ref) & Counter(cand)).total()
