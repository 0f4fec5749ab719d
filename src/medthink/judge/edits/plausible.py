"""What an edit may say: words that occur together in the expert's texts, and sizes within the range of the finding.

An edit that nobody would write is told false without the case, and an exam of such edits measures plausibility.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from medthink.metrics.findings.lexicon import content_words, word_set

_SIZE = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,2})?)\s?-?(mm|cm)\b")
# What is rarely larger in the texts of any benchmark, in mm; anything else may have the size of a hand.
_LARGEST_MM = {
    "node": 40.0, "nodes": 40.0, "lymph": 40.0, "nodule": 30.0, "nodules": 30.0, "appendix": 25.0, "duct": 25.0,
    "stone": 40.0, "calculus": 40.0, "polyp": 50.0, "aneurysm": 90.0, "vein": 30.0, "artery": 40.0, "disc": 15.0,
    "gallbladder": 60.0, "adrenal": 150.0, "thyroid": 80.0, "pituitary": 50.0, "microcalcification": 1.0, "bone": 200.0,
}  # fmt: skip
_SMALLEST_MM, _HAND_MM = 2.0, 180.0


_PLACES = word_set(
    "lobe lobes zone zones pole poles limb limbs third thirds half segment segments horn horns part parts"
    " aspect aspects portion end ends border margin surface side femur tibia humerus radius ulna fibula phalanx shaft"
    " epiphysis metaphysis diaphysis meniscus compartment mediastinum abdomen pelvis thigh leg arm forearm ureter"
    " oesophagus esophagus rib ribs mandible maxilla orbit fossa extremity quadrant calyx calyces endplate plate column"
)
# Words that some findings and places have and others do not: "proximal femur", but no "proximal enhancement".
_CHOOSY = word_set(
    "upper lower anterior posterior anteriorly posteriorly proximal distal proximally distally medial lateral medially"
    " laterally superior inferior superiorly inferiorly increased decreased increase decrease increasing decreasing"
    " enlargement shrinkage"
)


class References(NamedTuple):
    """What the expert's texts of a benchmark say side by side."""

    pairs: frozenset[tuple[str, str]]

    @staticmethod
    def of(texts: Iterable[str]) -> "References":
        """The pairs of neighbouring words of these texts."""
        return References(frozenset(pair for text in texts for pair in pairwise(_words(text))))

    def allow(self, before: str, after: str) -> bool:
        """Whether the edited sentence could stand in such a text."""
        old, words = set(_words(before)), _words(after)
        new = [place for place, word in enumerate(words) if word in _CHOOSY and word not in old]
        return _is_likely_size(after) and all(self._fits(words, place) for place in new)

    def _fits(self, words: list[str], place: int) -> bool:
        """Whether the word has a neighbour that it has in these texts too, or a place of the body."""
        around = list(pairwise(words[max(0, place - 1) : place + 2]))
        is_of_place = any(word in _PLACES for word in words[place + 1 : place + 3])
        return is_of_place or any(pair in self.pairs for pair in around)


def _words(text: str) -> list[str]:
    return [token.word for token in content_words(text)]


def _is_likely_size(sentence: str) -> bool:
    """Whether every size is one that the finding may have."""
    words = set(_words(sentence))
    largest = min((size for name, size in _LARGEST_MM.items() if name in words), default=_HAND_MM)
    sizes = [float(number) * (10 if unit == "cm" else 1) for number, unit in _SIZE.findall(sentence)]
    return all(min(_SMALLEST_MM, largest) <= size <= largest for size in sizes)
