"""Sequential comparison: runs are compared case by case, and may stop as soon as the result is known.

Cases are taken in a random order fixed by the benchmark's fingerprint, so it cannot be chosen. Only the unbroken prefix
of that order counts: answers that arrive early because they are easy must wait for those before them. A case that
failed is wrong, as in the score, and never skipped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import get_args

import msgspec

from medthink.cases.case import Case
from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.metrics.answers import GradedAnswer
from medthink.scoring.comparable import lacks_letters
from medthink.scoring.inputs import ScoringInput
from medthink.scoring.score import outcomes_by_case
from medthink.stats.confidence_sequences import MeanSequence, RateSequence, SignSequence, WatchClaim
from medthink.workflow.prediction import Prediction

ALPHA = 0.05
Watch = RateSequence | MeanSequence | SignSequence


class SequentialStatement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of monitoring a run, or two, so far.

    `claim`: *these* `n_cases` (the result of the finished run), or *such* cases. `seen` cases count, the unbroken
    prefix of the order; `known_after` of them were enough (None: not known yet). `low` and `high` hold at every case
    with 95 %, over all pairs watched; both are None for the claim about such cases of a pair with one sample a case,
    which has only a verdict. They bound a difference of two runs (`is_difference`) or an accuracy. Of a stopped run,
    `saved_cases` were not asked; of finished ones, they would not have been needed.
    """

    about: str
    claim: WatchClaim
    n_cases: int
    seen: int
    known_after: int | None
    low: float | None
    high: float | None
    is_difference: bool
    verdict: str
    saved_cases: int
    saved_usd: float | None


def sequential_order(cases: Iterable[int], text_fingerprint: str) -> list[int]:
    """The cases in the random order that the fingerprint fixes."""
    return sorted(cases, key=lambda case: digest_value(["watch order", text_fingerprint, case]))


class StopWhenKnown:
    """Stops a run when its accuracy is known to `half_width`, or when it is known to be better or worse than another.

    It is passed to the run as its stopping rule; see `medthink.runs.engine.StoppingRule`.
    """

    def __init__(
        self,
        cases: Mapping[int, Case],
        text_fingerprint: str,
        *,
        samples: int = 1,
        claim: WatchClaim = "these",
        half_width: float | None = None,
        rival: Mapping[int, float] | None = None,
    ) -> None:
        if (half_width is None) == (rival is None):
            raise UsageError(
                "the goal of --stop-when is missing", remedy="give a half-width in points, or a run to compare with"
            )
        if rival is not None and not rival.keys() >= cases.keys():
            raise UsageError("the other run lacks cases of this one", remedy="compare with a run on the same cases")
        if claim == "such" and samples > 1 and rival is None:
            raise UsageError(
                "with several samples, only the claim about these cases is available", remedy="leave out --population"
            )
        self._cases, self._samples, self._claim = cases, samples, claim
        self._half_width, self._rival = half_width, rival
        self._order = sequential_order(cases, text_fingerprint)
        self._rights: dict[int, dict[int, bool]] = {case: {} for case in cases}
        self._watch = self._open_watch()
        self.known_after: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether the goal is reached."""
        return self.known_after is not None

    def arrange(self, cases: Iterable[Case]) -> list[Case]:
        """The cases in the order in which they count."""
        place = {case: k for k, case in enumerate(self._order)}
        return sorted(cases, key=lambda case: place[case.id])

    def see(self, prediction: Prediction) -> None:
        """Add a prediction; they may arrive in any order."""
        gold = self._cases[prediction.case].reference.answer
        outcome = GradedAnswer(prediction.state, prediction.prediction, gold)
        self._rights[prediction.case][prediction.sample] = outcome.is_right
        for case in self._order[self._watch.seen :]:
            if len(self._rights[case]) != self._samples:
                break
            self._take(case)

    def statement(self, name: str, cost_per_case_usd: float | None) -> SequentialStatement:
        """The current statement."""
        about = f"accuracy of {name}" if self._rival is None else f"{name} against the other run"
        said = _statement(
            about, self._watch, len(self._order), self._claim, self.known_after, cost_per_case_usd,
            _rate_verdict(self._watch, self.known_after) if self._rival is None else _pair_verdict(self._watch),
        )  # fmt: skip
        # Calls that were in flight when it became known were made and paid for all the same.
        saved = min(said.saved_cases, sum(not seen for seen in self._rights.values()))
        cost = None if cost_per_case_usd is None else saved * cost_per_case_usd
        return msgspec.structs.replace(said, saved_cases=saved, saved_usd=cost)

    def _open_watch(self) -> Watch:
        n = len(self._cases)
        if self._rival is not None:
            is_plain = self._samples == 1 and all(right in (0.0, 1.0) for right in self._rival.values())
            return _open_pair(n, self._claim, is_plain=is_plain, alpha=ALPHA)
        if self._samples > 1:
            return MeanSequence(n, bounds=(0.0, 1.0), alpha=ALPHA)
        return RateSequence(n, claim=self._claim, alpha=ALPHA)

    def _take(self, case: int) -> None:
        right = sum(self._rights[case].values()) / self._samples
        if isinstance(self._watch, RateSequence):
            self._watch.see(right == 1)
        else:
            self._watch.see(right if self._rival is None else right - self._rival[case])
        if self.known_after is None and self._has_reached():
            self.known_after = self._watch.seen

    def _has_reached(self) -> bool:
        if self._half_width is None:
            return _sign(self._watch) != 0
        assert not isinstance(self._watch, SignSequence)
        return (self._watch.high - self._watch.low) / 2 <= self._half_width + 1e-9


def compare_sequentially(materials: Sequence[ScoringInput]) -> list[SequentialStatement]:
    """Compare every pair of runs (for one run: its accuracy), finished or not, in the same order, under both claims."""
    rights = [case_rights(material) for material in materials]
    order = sequential_order(materials[0].due, materials[0].text_fingerprint)
    for material in materials[1:]:
        if material.due != materials[0].due or (material.text_fingerprint != materials[0].text_fingerprint):
            raise UsageError(f"{material.name} does not cover the same cases", remedy="compare runs on the same cases")
    if len(materials) == 1:
        return [_watch_one(materials[0], rights[0], order)]
    pairs = list(combinations(range(len(materials)), 2))
    found = []
    for a, b in pairs:
        costs = [cost_per_case(materials[k]) for k in (a, b)]
        cost = None if None in costs else sum(one for one in costs if one is not None)
        shared = _prefix(order, rights[a], rights[b])
        gaps = [rights[a][case] - rights[b][case] for case in shared]
        about = f"{materials[a].name} − {materials[b].name}"
        is_plain = all(_sample_count(materials[k]) == 1 for k in (a, b))
        for claim in get_args(WatchClaim):
            watch = _open_pair(len(order), claim, is_plain=is_plain, alpha=ALPHA / len(pairs))
            known = _watch_gaps(watch, gaps)
            found.append(_statement(about, watch, len(order), claim, known, cost, _pair_verdict(watch)))
    return found


def case_rights(material: ScoringInput) -> dict[int, float]:
    """The share of right samples of every case that has all of them; a run without letters is refused."""
    if not material.has_letters:
        raise UsageError(lacks_letters(material.name), remedy="watch runs of a task that asks for letters")
    samples = _sample_count(material)
    return {
        case: sum(one.is_right for one in listed) / samples
        for case, listed in outcomes_by_case(material).items()
        if len(listed) == samples
    }


def _sample_count(material: ScoringInput) -> int:
    """How many samples a case has, however they are numbered."""
    return max(Counter(one.case for one in material.predictions).values(), default=1)


def _open_pair(n: int, claim: WatchClaim, *, is_plain: bool, alpha: float) -> MeanSequence | SignSequence:
    """The sequence for a difference; with several samples a case, the sign of a difference is not its size."""
    if claim == "such" and is_plain:
        return SignSequence(alpha=alpha)
    return MeanSequence(n, claim=claim, alpha=alpha)


def cost_per_case(material: ScoringInput) -> float | None:
    """The mean cost of a case, or None if a price is unknown."""
    costs = [one.cost_usd for one in material.predictions]
    known = [cost for cost in costs if cost is not None]
    cases = len({one.case for one in material.predictions})
    return sum(known) / cases if cases and len(known) == len(costs) else None


def _watch_one(material: ScoringInput, rights: dict[int, float], order: list[int]) -> SequentialStatement:
    is_plain = _sample_count(material) == 1
    watch: Watch = RateSequence(len(order)) if is_plain else MeanSequence(len(order), bounds=(0.0, 1.0))
    for case in _prefix(order, rights):
        watch.see(rights[case]) if isinstance(watch, MeanSequence) else watch.see(rights[case] == 1)
    cost = cost_per_case(material)
    return _statement(
        f"accuracy of {material.name}", watch, len(order), "these", None, cost, _rate_verdict(watch, None)
    )


def _prefix(order: list[int], *rights: Mapping[int, float]) -> list[int]:
    """The unbroken prefix of the order that all of them have."""
    for k, case in enumerate(order):
        if any(case not in one for one in rights):
            return order[:k]
    return order


def _watch_gaps(watch: MeanSequence | SignSequence, gaps: Sequence[float]) -> int | None:
    known = None
    for k, gap in enumerate(gaps, start=1):
        watch.see(gap)
        if known is None and _sign(watch):
            known = k
    return known


def _sign(watch: Watch) -> int:
    """1 or −1 where it is known which is ahead, else 0."""
    if isinstance(watch, SignSequence):
        return watch.verdict
    return 1 if watch.low > 0 else -1 if watch.high < 0 else 0


def _pair_verdict(watch: Watch) -> str:
    return {1: "the first is ahead", -1: "the second is ahead", 0: "not known yet"}[_sign(watch)]


def _rate_verdict(watch: Watch, known_after: int | None) -> str:
    return "as narrow as requested" if known_after is not None else f"known so far from {watch.seen} cases"


def _statement(
    about: str,
    watch: Watch,
    n_cases: int,
    claim: WatchClaim,
    known_after: int | None,
    cost: float | None,
    verdict: str,
) -> SequentialStatement:
    saved = 0 if known_after is None else n_cases - known_after
    low, high = (None, None) if isinstance(watch, SignSequence) else (watch.low, watch.high)
    return SequentialStatement(
        about=about,
        claim=claim,
        n_cases=n_cases,
        seen=watch.seen,
        known_after=known_after,
        low=low,
        high=high,
        is_difference=isinstance(watch, SignSequence) or (isinstance(watch, MeanSequence) and watch.is_signed),
        verdict=verdict,
        saved_cases=saved,
        saved_usd=None if cost is None else saved * cost,
    )
