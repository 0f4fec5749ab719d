"""Statistics of a benchmark: the summary table of a dataset card, and the distributions behind it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from medthink.cases.case import LETTERS, MODALITIES, UNKNOWN_MODALITY, Case
from medthink.cases.icd import code_of
from medthink.core.errors import DataError

UNKNOWN_CHAPTER = "unknown"

Value = TypeVar("Value")

_ROMAN = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII"


class SplitStatistics(msgspec.Struct, frozen=True):
    """The counts of one split, or of all; every mean and share can be recomputed from the counts next to it."""

    cases: int
    images: int
    longitudinal_cases: int
    modalities_summed: int
    correct_longest: int
    correct_longest_alone: int
    images_per_case: dict[int, int]
    modalities_per_case: dict[int, int]
    timepoints: dict[int, int]
    letters: dict[str, int]
    icd_chapters: dict[str, int]
    modality_images: dict[str, int]
    modality_cases: dict[str, int]
    sub_modality_images: dict[str, dict[str, int]]
    correct_option_lengths: dict[int, int]
    wrong_option_lengths: dict[int, int]

    @property
    def images_per_case_mean(self) -> float:
        """Images per case."""
        return self.images / self.cases

    @property
    def modalities_per_case_mean(self) -> float:
        """Distinct level-1 modalities per case."""
        return self.modalities_summed / self.cases

    @property
    def longitudinal_share(self) -> float:
        """The share of cases with several timepoints."""
        return self.longitudinal_cases / self.cases

    @property
    def sub_modalities(self) -> int:
        """How many different level-2 modalities are named."""
        return len({sub for subs in self.sub_modality_images.values() for sub in subs if sub})


class Statistics(msgspec.Struct, frozen=True):
    """The statistics of every split, and of all cases together."""

    splits: dict[str, SplitStatistics]
    overall: SplitStatistics

    @property
    def columns(self) -> dict[str, SplitStatistics]:
        """The splits and then "all", or the split alone when there is only one."""
        return self.splits if len(self.splits) == 1 else {**self.splits, "all": self.overall}


def compute_statistics(cases: Iterable[Case], *, advance: Callable[[], None] | None = None) -> Statistics:
    """Count everything in one pass."""
    tallies: dict[str, _Tally] = {}
    for case in cases:
        tallies.setdefault(case.split, _Tally()).add(case)
        if advance is not None:
            advance()
    if not tallies:
        raise DataError("there are no cases to describe", remedy="check that the files hold rows")
    overall = _Tally()
    for tally in tallies.values():
        overall.merge(tally)
    return Statistics({split: tally.result() for split, tally in tallies.items()}, overall.result())


class _Tally:
    """Counters, one for each question that is asked of a split."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.images_per_case: Counter[int] = Counter()
        self.modalities_per_case: Counter[int] = Counter()
        self.timepoints: Counter[int] = Counter()
        self.letters: Counter[str] = Counter()
        self.icd_chapters: Counter[str] = Counter()
        self.modality_cases: Counter[str] = Counter()
        self.sub_modalities: Counter[tuple[str, str]] = Counter()
        self.correct_lengths: Counter[int] = Counter()
        self.wrong_lengths: Counter[int] = Counter()

    def add(self, case: Case) -> None:
        reference, images = case.reference, case.question.images
        # An image without a label is counted as such, and is no modality.
        named = sum(one not in ("", UNKNOWN_MODALITY) for one in case.modalities)
        self.totals["cases"] += 1
        self.totals["images"] += len(images)
        self.totals["longitudinal"] += reference.is_longitudinal
        self.totals["modalities"] += named
        self.images_per_case[len(images)] += 1
        self.modalities_per_case[named] += 1
        self.timepoints[reference.timepoint_count] += 1
        self.letters[reference.answer] += 1
        self.icd_chapters[code_of(reference.icd_chapter, "ICD Chapter") or UNKNOWN_CHAPTER] += 1
        self.modality_cases.update(case.modalities)
        self.sub_modalities.update((image.modality, image.sub_modality) for image in reference.images)
        self._add_lengths(case)

    def _add_lengths(self, case: Case) -> None:
        options, answer = case.question.options, case.reference.answer
        lengths = {letter: len(text) for letter, text in options.items()}
        for letter, length in lengths.items():
            (self.correct_lengths if letter == answer else self.wrong_lengths)[length] += 1
        if answer in lengths and lengths[answer] == max(lengths.values()):
            self.totals["longest"] += 1
            self.totals["longest alone"] += list(lengths.values()).count(lengths[answer]) == 1

    def merge(self, other: "_Tally") -> None:
        for name, counter in vars(other).items():
            getattr(self, name).update(counter)

    def result(self) -> SplitStatistics:
        return SplitStatistics(
            cases=self.totals["cases"],
            images=self.totals["images"],
            longitudinal_cases=self.totals["longitudinal"],
            modalities_summed=self.totals["modalities"],
            correct_longest=self.totals["longest"],
            correct_longest_alone=self.totals["longest alone"],
            images_per_case=dict(sorted(self.images_per_case.items())),
            modalities_per_case=dict(sorted(self.modalities_per_case.items())),
            timepoints=dict(sorted(self.timepoints.items())),
            letters=_ordered(self.letters, LETTERS),
            icd_chapters=_ordered(self.icd_chapters, _ROMAN.split()),
            modality_images=_ordered(self._modality_images(), MODALITIES),
            modality_cases=_ordered(self.modality_cases, MODALITIES),
            sub_modality_images=self._by_modality(),
            correct_option_lengths=dict(sorted(self.correct_lengths.items())),
            wrong_option_lengths=dict(sorted(self.wrong_lengths.items())),
        )

    def _modality_images(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for (modality, _), count in self.sub_modalities.items():
            counts[modality] += count
        return counts

    def _by_modality(self) -> dict[str, dict[str, int]]:
        nested: dict[str, dict[str, int]] = {}
        for (modality, sub), count in sorted(self.sub_modalities.items(), key=lambda pair: (-pair[1], pair[0])):
            nested.setdefault(modality, {})[sub] = count
        return _ordered(nested, MODALITIES)


def _ordered(counts: Mapping[str, Value], order: Iterable[str]) -> dict[str, Value]:
    """The counts in the usual order of their names, unusual names last."""
    rank = {name: position for position, name in enumerate(order)}
    return {name: counts[name] for name in sorted(counts, key=lambda name: (rank.get(name, len(rank)), name))}
