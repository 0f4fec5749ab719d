"""Items labelled by several raters: labels that all others contradict, and how likely they are wrong."""

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.clusters import Floats

FEWEST_RATERS = 3
"""With two raters who differ, it is unknown which one erred."""

_STEPS = 200
# A prior of two right labels and one wrong keeps a rater's error rate above 0 and below a half.
_RIGHT, _WRONG = 2.0, 1.0


class LoneLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A rater's label that all others contradict; `doubt` is the chance that the rater, not the others, erred."""

    rater: int
    item: int
    others: int
    doubt: float


def lone_labels(labels: npt.ArrayLike) -> list[LoneLabel]:
    """The labels that two or more others all contradict, the most doubtful first.

    `labels` are raters × items of 0 and 1, NaN where there is no label. How likely each rater errs, on items of either
    kind, is learnt from all labels at once (Dawid and Skene 1979, by expectation and maximisation). It assumes that
    raters err independently given the truth: where they share an error the doubt is too high.
    """
    table = np.asarray(labels, dtype=np.float64)
    said = ~np.isnan(table)
    truth = _truths(table, said)
    found = []
    for item in np.flatnonzero(said.sum(axis=0) >= FEWEST_RATERS):
        raters = np.flatnonzero(said[:, item])
        votes = table[raters, item]
        for value in (0.0, 1.0):
            alone = raters[votes == value]
            if len(alone) == 1:
                doubt = float(truth[item] if value == 0 else 1 - truth[item])
                found.append(LoneLabel(rater=int(alone[0]), item=int(item), others=len(raters) - 1, doubt=doubt))
    return sorted(found, key=lambda one: (-one.doubt, one.item, one.rater))


def _truths(table: Floats, said: npt.NDArray[np.bool_]) -> Floats:
    """The chance that each item is a 1."""
    filled = np.where(said, table, 0.0)
    truth: Floats = filled.sum(axis=0) / np.maximum(said.sum(axis=0), 1)
    for _ in range(_STEPS):
        rate = (truth.sum() + 1) / (len(truth) + 2)
        hits = (filled @ truth + _RIGHT) / (said @ truth + _RIGHT + _WRONG)
        passes = ((said * (1 - filled)) @ (1 - truth) + _RIGHT) / (said @ (1 - truth) + _RIGHT + _WRONG)
        ones = np.log(rate) + (said * _log_chance(filled, hits[:, None])).sum(axis=0)
        zeros = np.log(1 - rate) + (said * _log_chance(1 - filled, passes[:, None])).sum(axis=0)
        newer = 1 / (1 + np.exp(zeros - ones))
        if np.abs(newer - truth).max(initial=0.0) < 1e-9:
            break
        truth = newer
    return truth


def _log_chance(is_right: Floats, rate: Floats) -> Floats:
    return np.where(is_right > 0, np.log(rate), np.log(1 - rate))
