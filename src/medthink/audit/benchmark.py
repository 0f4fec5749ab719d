"""Audit of a benchmark without any model: the accuracy possible from options, history, letters and lengths alone.

A guesser raises the alarm when it beats chance significantly: a one-sided test, corrected by Holm over all guessers of
the audit, at 1 %. Rules, and guessers trained on the train split, are tested by the exact binomial. Without a train
split hit counts are no binomial: the majority letter is tested by the exact maximum of a multinomial, cross-validated
guessers against right answers drawn by chance. Look-alikes of the same answer count once, so that a doubled case is no
shortcut. The images' guesser raises none: the images should decide. A guesser with the same inputs as another
(no history, or no image) adds no evidence.
"""

from collections import Counter
from collections.abc import Callable
from statistics import fmean
from typing import Literal, cast

import msgspec
import numpy as np

from medthink.audit.rivals import (
    FOLDS,
    IMAGE_FREE,
    Guesses,
    KeptGuesses,
    guess_longest,
    guess_majority,
    look_alike_groups,
)
from medthink.baselines import Inputs
from medthink.baselines.guesser import hits_by_chance
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cases.check.run import check_benchmark
from medthink.cases.images.fact_cache import CachingImageStore
from medthink.core.digest import seed_from
from medthink.stats.bootstrap import bootstrap_mean
from medthink.stats.chance import hits_p_value, largest_count_p_value
from medthink.stats.comparisons.differences import holm
from medthink.stats.estimate import Measured
from medthink.stats.intervals import wilson
from medthink.stats.power import detectable_rate

ALPHA = 0.01
Verdict = Literal["clear", "alarm", "for information", "same as another"]


class GuesserScore(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of a guesser, compared with chance."""

    name: str
    source: str
    accuracy: Measured
    chance: float
    p_holm: float | None
    verdict: Verdict
    meaning: str


class LengthGap(msgspec.Struct, frozen=True, kw_only=True):
    """The length of the right option minus the mean of the wrong ones, in characters."""

    characters: Measured
    right_is_longest: Measured


class BenchmarkAudit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit of a benchmark.

    `detectable` is the true rate of a guesser that would have raised the alarm with 80 % power; None if none would.
    `n_look_alikes` of the cases look like another with the same answer; they are not among the `n_cases` counted.
    """

    split: str
    n_cases: int
    n_look_alikes: int
    text_fingerprint: str
    scores: tuple[GuesserScore, ...]
    letters: dict[str, int]
    length_gap: LengthGap
    problems: dict[str, int]
    detectable: float | None

    @property
    def alarms(self) -> tuple[GuesserScore, ...]:
        """The guessers that beat chance."""
        return tuple(score for score in self.scores if score.verdict == "alarm")


_MEANINGS = {
    "majority letter": "the same letter every time",
    "longest option": "the longest option every time",
    "guesser:options": "the five options only, nothing of the case",
    "guesser:question": "history and options, no image",
    "guesser:images": "images and options, no history",
}
_TELLING = ("majority letter", "longest option", "guesser:options", "guesser:question")
_COUNTED = ("answer-in-history", "history-duplicate-across-splits", "id-duplicate", "options-not-distinct")


def audit_benchmark(benchmark: Benchmark, split: str, *, advance: Callable[[str], object] = str) -> BenchmarkAudit:
    """Audit a split; `advance` is called with what takes a while: a guesser to train, a test, the checks."""
    benchmark = benchmark.remembering()
    kept = KeptGuesses(benchmark, split)
    material = kept.material
    found = [guess_majority(material), guess_longest(material.cases)]
    found += [kept.by_inputs(inputs, advance) for inputs in (*IMAGE_FREE, "images")]
    if isinstance(benchmark.images, CachingImageStore):
        benchmark.images.save()
    advance("duplicates and leaks")
    counts = check_benchmark(benchmark, images=False).counts
    distinct = distinct_cases(material.cases)
    scores = judge_guessers(found, distinct, advance)
    tested = sum(score.p_holm is not None for score in scores)
    return BenchmarkAudit(
        split=split,
        n_cases=len(distinct),
        n_look_alikes=len(material.cases) - len(distinct),
        text_fingerprint=benchmark[split].text_fingerprint(),
        scores=scores,
        letters=dict(sorted(Counter(case.reference.answer for case in material.cases).items())),
        length_gap=_measure_lengths(material.cases),
        problems={code: counts.get(code, 0) for code in _COUNTED},
        detectable=detectable_rate(n=len(distinct), chance=scores[0].chance, alpha=ALPHA / max(1, tested)),
    )


def distinct_cases(cases: list[Case]) -> list[Case]:
    """The first case of each group of look-alikes."""
    return [
        case for place, (case, group) in enumerate(zip(cases, look_alike_groups(cases), strict=True)) if place == group
    ]


def judge_guessers(
    found: list[Guesses], cases: list[Case], advance: Callable[[str], object] = str
) -> tuple[GuesserScore, ...]:
    """Set the guessers against chance on these cases, of which none looks like another."""
    chance = fmean(1 / len(case.question.options) for case in cases)
    right = [sum(guesses.letters[case.id] == case.reference.answer for case in cases) for guesses in found]
    same = _same_inputs(cases)
    telling = [place for place, guesses in enumerate(found) if guesses.name in _TELLING and guesses.name not in same]
    raw = [_p_value(found[place], right[place], cases, chance, advance) for place in telling]
    corrected = dict(zip(telling, map(float, holm(raw)), strict=True))
    return tuple(
        GuesserScore(
            name=guesses.name,
            source=guesses.source,
            accuracy=wilson(right[place], len(cases)),
            chance=chance,
            p_holm=corrected.get(place),
            verdict="same as another" if guesses.name in same else _verdict(corrected.get(place)),
            meaning=same.get(guesses.name) or _MEANINGS[guesses.name],
        )
        for place, guesses in enumerate(found)
    )


# Above the second a guesser raises no alarm whatever its spread, below the first it does; between, more rounds tell.
_CLEAR = (1e-4, 0.05)
_ROUNDS = (20, 60)


def _p_value(guesses: Guesses, hits: int, cases: list[Case], chance: float, advance: Callable[[str], object]) -> float:
    from scipy.stats import binom

    plain = float(binom.sf(hits - 1, len(cases), chance))
    if guesses.source != "cross-validated":
        return plain
    if guesses.name == "majority letter":
        return _majority_p_value(cases)
    if plain > _CLEAR[1]:
        return plain
    advance(f"{guesses.name}, answers by chance")
    inputs = cast("Inputs", guesses.name.removeprefix("guesser:"))
    for rounds in _ROUNDS:
        by_chance = hits_by_chance(cases, inputs, rounds=rounds, folds=FOLDS)
        p_value = hits_p_value(hits, by_chance.tolist(), len(cases), chance)
        if not _CLEAR[0] < p_value < _CLEAR[1]:
            break
    return p_value


def _majority_p_value(cases: list[Case]) -> float:
    """Of the most frequent letter; where cases differ in their number of options, an upper bound."""
    from scipy.stats import binom

    counts = Counter(case.reference.answer for case in cases)
    sizes = {len(case.question.options) for case in cases}
    largest = max(counts.values())
    if len(sizes) == 1:
        return largest_count_p_value(largest, len(cases), sizes.pop())
    shares: dict[str, float] = {}
    for case in cases:
        for letter in case.question.options:
            shares[letter] = shares.get(letter, 0.0) + 1 / len(case.question.options) / len(cases)
    return min(1.0, sum(float(binom.sf(largest - 1, len(cases), share)) for share in shares.values()))


def _same_inputs(cases: list[Case]) -> dict[str, str]:
    """The guessers that see no more than the options here, with the reason."""
    same = {}
    if not any(case.question.history.strip() for case in cases):
        same["guesser:question"] = "no case has a history, so this is the options alone again"
    if not any(case.question.images for case in cases):
        same["guesser:images"] = "no case has an image, so this is the options alone again"
    return same


def _verdict(p_holm: float | None) -> Verdict:
    if p_holm is None:
        return "for information"
    return "alarm" if p_holm < ALPHA else "clear"


def _measure_lengths(cases: list[Case]) -> LengthGap:
    gaps, longest = [], 0
    for case in cases:
        lengths = {letter: len(text.strip()) for letter, text in case.question.options.items()}
        own = lengths.pop(case.reference.answer)
        gaps.append(own - fmean(lengths.values()))
        longest += own >= max(lengths.values())
    rng = np.random.default_rng(seed_from("length gap", len(cases)))
    return LengthGap(characters=bootstrap_mean(gaps, rng=rng), right_is_longest=wilson(longest, len(cases)))
