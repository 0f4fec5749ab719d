"""Split: by case, near-duplicates together, stratified by ICD chapter, modality and length rank.

Stages after `balance` may have left out cases, so the length ranks are capped again, and the letters of each split are
assigned for the last time.
"""

import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medthink.cases.case import LETTERS, Case, Image
from medthink.cases.check.texts import normalised_words
from medthink.cases.images.similarity import NEAR_BITS, ImageAppearance, appearance, is_same_appearance
from medthink.core.digest import seed_from
from medthink.core.errors import DataError, UsageError
from medthink.curate.ask import StageModel
from medthink.curate.decision import StageResult, drop_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import SplitSettings
from medthink.curate.stage import Drafts, Stage
from medthink.curate.stages.balance import (
    RANKS,
    BalanceCase,
    answer_length_rank,
    assign_letters,
    cases_over_cap,
    count_letters,
    few_to_balance,
    rank_cap,
    refuse_other_options,
    with_letter,
)

_GRAM, _SKETCH = 5, 64
_ANCHORS, _SHARED = 8, 3
_SIMILAR = 0.8
_BLOCK = 1024


class TextSketches:
    """The lowest hashes of each text's five-word sequences: half a kilobyte per text, whatever its length.

    The share of the lowest 64 hashes that two texts have in common estimates the Jaccard similarity of their sequences,
    to five points. Texts that share fewer than three of their lowest eight hashes are not compared: at a similarity of
    0.8 that happens once in a thousand.
    """

    def __init__(self) -> None:
        self._sketches: dict[int, NDArray[np.uint32]] = {}
        self._met: dict[int, list[int]] = {}

    def add(self, case: int, text: str) -> list[int]:
        """Add a text; returns the earlier cases whose text is nearly the same."""
        sketch = _sketch(text)
        if not len(sketch):
            return []
        anchors = sketch[:_ANCHORS].tolist()
        near = Counter(other for anchor in anchors for other in self._met.get(anchor, ()))
        needed = min(_SHARED, len(anchors))
        found = [
            other
            for other, shared in near.items()
            if shared >= needed and _similarity(sketch, self._sketches[other]) >= _SIMILAR
        ]
        self._sketches[case] = sketch
        # The first of equal texts represents all: a thousand copies of "not available" must not be compared in pairs.
        if not any(np.array_equal(sketch, self._sketches[other]) for other in found):
            for anchor in anchors:
                self._met.setdefault(anchor, []).append(case)
        return sorted(found)


def _sketch(text: str) -> NDArray[np.uint32]:
    words = normalised_words(text).split()
    grams = [b" ".join(words[at : at + _GRAM]) for at in range(max(1, len(words) - _GRAM + 1))] if words else []
    hashes = np.fromiter({_mix(zlib.crc32(gram)) for gram in grams}, dtype=np.uint32)
    hashes.sort()
    return hashes[:_SKETCH]


def _mix(value: int) -> int:
    """Checksums of similar texts are similar; after multiplication they are not."""
    return (value * 2654435761) & 0xFFFFFFFF


def _similarity(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> float:
    lowest = np.union1d(one, other)[: min(_SKETCH, max(len(one), len(other)))]
    both = np.intersect1d(one, other)
    return len(np.intersect1d(lowest, both)) / len(lowest)


class ImageHashes:
    """The perceptual hashes of all images, eight bytes each; the pictures are opened only to confirm a pair."""

    def __init__(self) -> None:
        self._hashes: list[int] = []
        self._images: list[tuple[int, Image]] = []

    def add(self, case: int, image: Image, phash: str = "") -> None:
        """Add an image, opening it if its hash is missing.

        One that cannot be opened, or has no contrast, matches no other.
        """
        found = int(phash, 16) if phash else _hash_of(image)
        if found is not None:
            self._hashes.append(found)
            self._images.append((case, image))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The cases that share a picture."""
        hashes = np.array(self._hashes, dtype=np.uint64)
        joined: set[tuple[int, int]] = set()
        for start in range(0, len(hashes), _BLOCK):
            rows = hashes[start : start + _BLOCK]
            near = np.argwhere(np.bitwise_count(rows[:, None] ^ hashes[None, start:]) <= NEAR_BITS)
            for row, column in near:
                (case, image), (other, its) = self._images[start + int(row)], self._images[start + int(column)]
                pair = (case, other)
                if row < column and case != other and pair not in joined and _is_same(image, its):
                    joined.add(pair)
                    yield pair


def _hash_of(image: Image) -> int | None:
    look = _look(image)
    return None if look is None else look.hash


def _is_same(one: Image, other: Image) -> bool:
    looks = _look(one), _look(other)
    return looks[0] is not None and looks[1] is not None and is_same_appearance(looks[0], looks[1])


@lru_cache(maxsize=4096)
def _look(image: Image) -> ImageAppearance | None:
    try:
        return appearance(image.open())
    except DataError:
        return None


class DuplicateGroups:
    """Groups of cases that belong together: the finest grouping that joins every pair."""

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable] = {}

    def find(self, one: Hashable) -> Hashable:
        """The representative of the group."""
        path = [one]
        while (parent := self._parents.get(path[-1], path[-1])) != path[-1]:
            path.append(parent)
        for each in path:
            self._parents[each] = path[-1]
        return path[-1]

    def join(self, ones: Iterable[Hashable]) -> None:
        """Put these into one group."""
        first, *rest = ones
        for one in rest:
            self._parents[self.find(one)] = self.find(first)


class LabelledGroup(NamedTuple):
    """Cases that must stay together, with the counts of their labels."""

    name: int
    size: int
    labels: Counter[str]


class _Shares:
    """What each split still lacks of its share, of cases and of every label, and the groups placed so far."""

    def __init__(self, groups: Sequence[LabelledGroup], shares: Mapping[str, float]) -> None:
        total = sum(group.size for group in groups)
        self.counts: Counter[str] = Counter()
        for group in groups:
            self.counts.update(group.labels)
        self.placed: dict[int, str] = {}
        self._lacking = {split: share * total for split, share in shares.items()}
        self._wanted = {
            split: {label: share * count for label, count in self.counts.items()} for split, share in shares.items()
        }

    def place(self, group: LabelledGroup, split: str) -> None:
        """Put the group into this split."""
        self.placed[group.name] = split
        self._lacking[split] -= group.size
        for label, count in group.labels.items():
            self._wanted[split][label] -= count
            self.counts[label] -= count

    def neediest(self, label: str) -> str:
        """The split that lacks most of a label."""
        return max(self._lacking, key=lambda one: (self._wanted[one].get(label, 0.0), self._lacking[one]))


def stratify(
    groups: Sequence[LabelledGroup], shares: Mapping[str, float], seed: int, fixed: Mapping[int, str] | None = None
) -> dict[int, str]:
    """A split for each group; the rarest label is distributed first, to whichever split lacks most of it.

    The groups whose split is `fixed` keep it, and count.
    """
    left = _Shares(groups, shares)
    waiting = {group.name: group for group in sorted(groups, key=lambda one: seed_from("split", seed, one.name))}
    for name, split in (fixed or {}).items():
        left.place(waiting.pop(name), split)
    by_label: dict[str, list[int]] = {}
    for group in waiting.values():
        for label in group.labels:
            by_label.setdefault(label, []).append(group.name)
    while waiting:
        label = min(
            (one for one in left.counts if left.counts[one] > 0), key=lambda one: (left.counts[one], one), default=""
        )
        # The largest groups first: they are the hardest to place.
        names = [name for name in by_label.get(label, waiting) if name in waiting]
        for name in sorted(names, key=lambda name: -waiting[name].size):
            left.place(waiting.pop(name), left.neediest(label))
        left.counts.pop(label, None)
    return left.placed


TRAIN, VALIDATION, TEST = "train", "validation", "test"


class SplitStage(Stage[SplitSettings]):
    """The final choice of cases, splits and letters."""

    name = "split"
    follows_release = True

    def survey(self, drafts: Drafts) -> None:
        """Group, balance the ranks, split, assign letters."""
        shares = self._shares()
        self._published: dict[int, Case] = {}
        seen = [self._see(draft) for draft in drafts()]
        ranks = {one.case: one.rank for one in seen}
        contenders = [BalanceCase(one.case, (one.rank,), one.gap, bool(one.split)) for one in seen]
        cap = rank_cap(len(contenders), self.settings.max_rank_share)
        self._dropped = cases_over_cap(contenders, ranks, cap)
        kept = [one for one in seen if one.case not in self._dropped]
        members = _gather(_find_groups(drafts), kept)
        self._group = {one.case: name for name, ones in members.items() if len(ones) > 1 for one in ones}
        parts, self._between = _by_published_split(members.values())
        splits = self._place(parts, shares)
        self._splits = {one.case: splits[name] for name, ones in parts.items() for one in ones}
        self._letters = {case: one.reference.answer for case, one in self._published.items()}
        dealt = count_letters(self._published.values())
        for split in dict.fromkeys([*shares, *splits.values()]):
            own = [case for case, found in self._splits.items() if found == split and case not in self._published]
            self._letters |= assign_letters(own, self.context.seed, dealt)
        self._ranks = Counter(one.rank for ones in parts.values() for one in ones)

    def _see(self, draft: Draft) -> "_Seen":
        refuse_other_options(draft)
        known, published = self.context.release.case_of(draft), self.context.release.options_of(draft)
        if published is not None:
            self._published[draft.id] = published
        split = "" if known is None else known.split
        return _Seen(draft.id, _labels(draft), answer_length_rank(draft), _gap(draft), split)

    def _place(self, parts: "dict[int, list[_Seen]]", shares: dict[str, float]) -> dict[int, str]:
        """The split of every group, by its lowest number: the published one, or one that lacks such cases."""
        labelled = [
            LabelledGroup(name, len(ones), Counter(label for one in ones for label in one.labels))
            for name, ones in parts.items()
        ]
        fixed = {name: split for name, ones in parts.items() if (split := max(one.split for one in ones))}
        # A split that is published and that the plan does not make keeps its cases and gets no other.
        return stratify(labelled, dict.fromkeys(fixed.values(), 0.0) | shares, self.context.seed, fixed)

    def _shares(self) -> dict[str, float]:
        rest = 1 - self.settings.test_share - self.settings.validation_share
        if rest < -1e-9:
            raise UsageError("the test and validation shares add up to more than 1", remedy="make them smaller")
        shares = {TRAIN: max(0.0, rest), VALIDATION: self.settings.validation_share, TEST: self.settings.test_share}
        return {split: share for split, share in shares.items() if share > 0}

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:  # noqa: ARG002
        """The draft with its split and its letter, or a decision to leave it out."""
        if draft.id in self._dropped:
            detail = f"too many right options rank {answer_length_rank(draft) + 1} by length too often"
            return drop_case("length-rank", by=f"rule max_rank_share {self.settings.max_rank_share:g}", detail=detail)
        group = self._group.get(draft.id)
        if draft.id in self._between:
            return drop_case("between-splits", by="rule split", detail=f"like case {group}: published in two splits")
        letter, published = self._letters[draft.id], self._published.get(draft.id)
        made = with_letter(draft, letter, published, self.context.seed)
        made = made.with_notes(split=self._splits[draft.id], group="" if group is None else f"like case {group}")
        return pass_case(made, reason=self._splits[draft.id], by="rule split", detail=made.notes.group)

    def not_covered(self) -> tuple[str, ...]:
        """The lengths of few cases."""
        return few_to_balance(self._ranks.total())

    def report(self) -> dict[str, Any]:
        """Sizes, groups, ranks and letters."""
        sizes = Counter(self._splits.values())
        letters = Counter((self._splits[case], letter) for case, letter in self._letters.items())
        told = {
            f"letters of {split}": " ".join(f"{letter} {letters[split, letter]}" for letter in LETTERS)
            for split in sizes
        }
        return {
            "splits": ", ".join(f"{split} {sizes[split]}" for split in sizes),
            "cases with a near-duplicate": len(self._group),
            "length ranks": "/".join(str(self._ranks[rank]) for rank in RANKS),
        } | told


class _Seen(NamedTuple):
    """The data of a case that the split depends on; `split` is the published one."""

    case: int
    labels: list[str]
    rank: int
    gap: int
    split: str


def _find_groups(drafts: Drafts) -> DuplicateGroups:
    """Groups of cases that share a picture, a history or a named group."""
    groups, texts, looks = DuplicateGroups(), TextSketches(), ImageHashes()
    for draft in drafts():
        groups.join([draft.id, *texts.add(draft.id, draft.case.question.history)])
        if draft.notes.group:
            groups.join([draft.id, f"group {draft.notes.group}"])
        noted = {one["id"]: one.get("phash", "") for one in draft.notes.marks.get("ingest", {}).get("images", [])}
        for image in draft.case.question.images:
            looks.add(draft.id, image, noted.get(image.id, ""))
    for pair in looks.pairs():
        groups.join(pair)
    return groups


def _gather(groups: DuplicateGroups, kept: list[_Seen]) -> dict[int, list[_Seen]]:
    """The groups among these cases, each by its lowest number."""
    gathered: dict[Hashable, list[_Seen]] = {}
    for one in kept:
        gathered.setdefault(groups.find(one.case), []).append(one)
    return {min(one.case for one in ones): ones for ones in gathered.values()}


def _by_published_split(groups: Iterable[list[_Seen]]) -> tuple[dict[int, list[_Seen]], set[int]]:
    """The groups, each by its lowest number, and the new cases that belong to no split.

    A group that is published in two splits stays as it is published; a new case would repeat one of them in the other.
    """
    parts: dict[int, list[_Seen]] = {}
    between: set[int] = set()
    for group in groups:
        splits = sorted({one.split for one in group if one.split})
        between |= {one.case for one in group if not one.split and len(splits) > 1}
        for part in [[one for one in group if one.split == split] for split in splits] if len(splits) > 1 else [group]:
            parts[min(one.case for one in part)] = part
    return parts, between


def _labels(draft: Draft) -> list[str]:
    reference = draft.case.reference
    chapter = reference.icd_chapter.partition(" - ")[0]
    return [
        f"icd {chapter}",
        f"rank {answer_length_rank(draft)}",
        *(f"modality {one}" for one in draft.case.modalities),
    ]


def _gap(draft: Draft) -> int:
    """The difference of the right option's length from the others."""
    answer = draft.case.reference.answer_text
    lengths = sorted(len(text) for text in draft.case.question.options.values() if text != answer)
    return abs(len(answer) - lengths[len(lengths) // 2]) if lengths else 0


STAGE = SplitStage
