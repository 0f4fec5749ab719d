"""Comparable results and their ranking: one rule for comparisons, reports and boards."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from medthink.core.digest import seed_from
from medthink.scoring.scores import Scores
from medthink.stats.comparisons.ranks import Ranking, rank_runs


def why_incomparable(a: Scores, b: Scores) -> str:
    """The reason why two results cannot be compared, or "".

    A file of predictions does not know the images of its benchmark, and may be compared with runs. Results with expert
    cues and without may be compared for one model, to see the cues' effect; never across two models, nor ranked
    together.
    """
    if a.origin.text_fingerprint != b.origin.text_fingerprint:
        return "the benchmark's fingerprint (text_fingerprint) differs"
    if None not in (a.origin.fingerprint, b.origin.fingerprint) and a.origin.fingerprint != b.origin.fingerprint:
        return "the benchmark's fingerprint (images) differs"
    for one in (a, b):
        if not one.cases:
            return lacks_letters(one.origin.name)
    if [one.case for one in a.cases] != [one.case for one in b.cases]:
        return "the selection of cases differs"
    if not share_kind((a, b)) and a.origin.model != b.origin.model:
        return "one of them was shown expert cues, and such runs can only be compared for the same model"
    return ""


def lacks_letters(name: str) -> str:
    """Why a run cannot be right or wrong, in words."""
    return f"{name} has no answers by letter (its task, or options that were hidden)"


def comparable_kind(scores: Scores) -> str:
    """The kind of condition; a submission, which states none, counts as unaided, as the card's rules require."""
    return "unaided" if scores.origin.kind == "submitted" else scores.origin.kind


def share_kind(scored: Iterable[Scores]) -> bool:
    """Whether all conditions are of one kind: unaided and expert-cued results are never ranked together."""
    return len({comparable_kind(one) for one in scored}) == 1


def is_whole(scores: Scores) -> bool:
    """Whether the model was shown all of each case; assumed of a submission, which states no condition."""
    condition = scores.origin.condition or {}
    is_complete = condition.get("image_share", 1) == 1 and condition.get("show_history", True)
    return is_complete and not condition.get("swap_images", False)


def rank_together(rights: npt.ArrayLike, cases: Sequence[int], *, with_pairs: bool = True) -> Ranking:
    """The ranking of results by their shares of right answers (one row each) on these cases.

    It depends on the answers alone: names and order change nothing, so it is the same wherever it is shown. On the same
    cases the flips are the same, so that a further result never narrows an interval.
    """
    return rank_runs(rights, cases=cases, rng=cases_rng(cases), with_pairs=with_pairs)


def cases_rng(cases: Sequence[int]) -> np.random.Generator:
    """A generator seeded with the cases, in whatever order: the same for every comparison on them."""
    return np.random.default_rng(seed_from("ranks", *sorted(cases)))
