"""Item analysis over many runs: how hard each case is, how well it separates runs, and which keys may be wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.core.numbers import as_percent
from medthink.stats.estimate import Estimate, Floats, Measured, Undefined, as_floats
from medthink.stats.intervals import normal_quantile, share_interval

FEWEST_FOR_DISCRIMINATION = 20
"""Discrimination is not reported for fewer models: its reliability per case is too low."""

_LEVEL = 0.95
_ROUNDING = 1e-9


class CaseItem(msgspec.Struct, frozen=True, kw_only=True):
    """One case over all models: the share right (with its interval over models), shrunk, and its discrimination.

    `difficulty` is 1 − `shrunk`. `discrimination` is the correlation of being right here with the mean elsewhere,
    shrunk by its reliability, with its interval; None with fewer than 20 models or where all models did equally well.
    `is_separating`: between a quarter and three quarters of the leaders are right.
    """

    case: int
    right: Measured
    shrunk: float
    discrimination: Measured | None
    is_separating: bool

    @property
    def difficulty(self) -> float:
        """The expected share of such models that is wrong."""
        return 1 - self.shrunk


class ItemTable(msgspec.Struct, frozen=True, kw_only=True):
    """All cases, hardest first, and the number of models."""

    cases: tuple[CaseItem, ...]
    models: int
    prior_strength: float


class SuspectKey(msgspec.Struct, frozen=True, kw_only=True):
    """A case where the best models agree on an answer that the key calls wrong; a reader should check it."""

    case: int
    key: str
    voted: str
    votes: int


class SuspectKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The reading list, the models that voted, and the share of false alarms to expect.

    `false_share` maps an assumed share of wrong keys to the expected share of the list that is not one, by the recall
    and false-alarm rate measured where models are strong; weak models that share distractors do far worse.
    """

    listed: tuple[SuspectKey, ...]
    voters: tuple[str, ...]
    n_cases: int
    false_share: dict[str, float]


def item_table(scores: npt.ArrayLike, *, cases: Sequence[int], leaders: Sequence[int]) -> ItemTable:
    """Difficulty and discrimination of each case from models × cases (one row per model, its samples averaged).

    The share right is shrunk towards the mean of all cases, p* = (pR + p̄M)/(R + M) with M = 1/ρ − 1 and ρ the
    correlation of models within a case by moments: a beta-binomial mean. It is stable from ten models on; single
    cases' discrimination is not (split-half 0.44 on 59 real cases), so it is withheld below 20 models.
    """
    table = as_floats(scores, name="scores")
    if table.ndim != 2 or table.shape[1] != len(cases) or not len(table):
        raise ValueError(
            f"scores of shape {table.shape} need one row per model and one column for each of the {len(cases)} cases"
        )
    shares, models = table.mean(axis=0), len(table)
    strength = _prior_strength(shares, models)
    shrunk = (shares * models + shares.mean() * strength) / (models + strength)
    discrimination = _discrimination(table)
    top = table[list(leaders)].mean(axis=0) if leaders else np.ones(len(shares))
    found = [
        CaseItem(
            case=case,
            right=share_interval(table[:, k]),
            shrunk=float(shrunk[k]),
            discrimination=discrimination[k],
            is_separating=bool(0.25 <= top[k] <= 0.75),
        )
        for k, case in enumerate(cases)
    ]
    ordered = tuple(sorted(found, key=lambda one: (one.shrunk, one.case)))
    return ItemTable(cases=ordered, models=models, prior_strength=float(strength))


def _prior_strength(shares: Floats, models: int) -> float:
    mean = float(shares.mean())
    spread = float(shares.var(ddof=1)) if len(shares) > 1 else 0.0
    most = mean * (1 - mean)
    if models < 2 or most == 0:
        return 0.0
    rho = (spread / most - 1 / models) / (1 - 1 / models)
    return 1 / min(1.0, max(rho, 1e-3)) - 1


def _discrimination(table: Floats) -> list[Measured | None]:
    """Item–rest correlations, shrunk towards their mean by their reliability.

    The interval is Fisher's, of the correlation itself: one around the shrunk value would look too narrow.
    """
    models, cases = table.shape
    if models < FEWEST_FOR_DISCRIMINATION or cases < 3:
        return [None] * cases
    rest = (table.sum(axis=1, keepdims=True) - table) / (cases - 1)
    spreads = table.std(axis=0) * rest.std(axis=0)
    moments = ((table - table.mean(axis=0)) * (rest - rest.mean(axis=0))).mean(axis=0)
    defined = spreads > 1e-12
    if not defined.any():
        return [None] * cases
    raw = moments[defined] / spreads[defined]
    noise = 1 / (models - 3)
    reliability = max(0.0, 1 - noise / max(float(raw.var()), 1e-12))
    shrunk = raw.mean() + reliability * (raw - raw.mean())
    told = iter(zip(shrunk.tolist(), raw.tolist(), strict=True))
    return [_correlation(*next(told), models) if known else None for known in defined]


def _correlation(value: float, raw: float, models: int) -> Measured:
    if abs(raw) > 1 - _ROUNDING:
        return Undefined(reason="a perfect correlation shows no spread", n=models, value=value)
    centre = np.arctanh(raw)
    half = normal_quantile(_LEVEL) / (models - 3) ** 0.5
    return Estimate(
        value=value,
        low=min(value, float(np.tanh(centre - half))),
        high=max(value, float(np.tanh(centre + half))),
        level=_LEVEL,
        n=models,
        clusters=models,
        method="item–rest correlation, shrunk by its reliability",
    )


# Recall, and false alarms per untouched case, of "all of the best six" and "all of the best nine": wrong keys were
# planted in real answers of models that are right 72 to 92 % of the time.
_RECALL = {6: 0.76, 9: 0.66}
_FALSE_ALARMS = {6: 0.004, 9: 0.0035}
FEWEST_VOTERS, MOST_VOTERS = 6, 9


def suspect_keys(
    votes: Mapping[str, Mapping[int, str | None]], keys: Mapping[int, str], *, accuracies: Mapping[str, float]
) -> SuspectKeys | None:
    """The cases on which the best 6 to 9 models all name the same other option; None with fewer than six models.

    `votes` has each model's one answer to a case (the most frequent of its samples). Models err together, so there is
    no binomial p-value here: this is a reading list, and the share of false alarms depends on how many keys are wrong.
    """
    best = sorted(votes, key=lambda model: (-accuracies[model], model))[:MOST_VOTERS]
    if len(best) < FEWEST_VOTERS:
        return None
    listed = []
    for case, key in keys.items():
        named = Counter(votes[model].get(case) for model in best)
        (answer, count), *others = named.most_common()
        if answer is not None and answer != key and not others:
            listed.append(SuspectKey(case=case, key=key, voted=answer, votes=count))
    rule = MOST_VOTERS if len(best) == MOST_VOTERS else FEWEST_VOTERS
    return SuspectKeys(
        listed=tuple(listed),
        voters=tuple(best),
        n_cases=len(keys),
        false_share={as_percent(wrong, 0): _false_share(wrong, rule) for wrong in (0.02, 0.05)},
    )


def _false_share(wrong: float, rule: int) -> float:
    false = (1 - wrong) * _FALSE_ALARMS[rule]
    return false / (false + wrong * _RECALL[rule])
