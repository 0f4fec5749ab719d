"""BLEU-2 of one pair, exactly as RadCliQ's original computes it.

Range 0 to 1, higher is better. Sentence level, one reference, weights 1/2 and 1/2, clipped counts, 0.1 in place of zero
bigram matches (smoothing method 1), brevity penalty exp(1 - r/h) for candidates not longer than the reference. A
one-word text therefore scores sqrt(0.1) against itself. Words are split at spaces only, after the text is lower-cased
and full stops are separated: commas and line breaks stay attached to their words.
"""

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise


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
