"""The gain of a run over the strongest of its rivals, and the choice of that rival, for every table and page."""

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from medthink.audit.rivals import Guesses
from medthink.core.digest import seed_from
from medthink.stats.comparisons.gain import gain_over_rivals
from medthink.stats.estimate import Measured
from medthink.stats.intervals import share_interval

Fields = dict[str, Any]
"""A condition's fields by name."""

_IMAGE_FREE = frozenset({"own run without images", "own run, options only"})


class RivalAnswers(NamedTuple):
    """A rival's share of right answers on each of a run's cases.

    `name` describes the rival. `run` names the run if it is one of the model's own, and is empty for a guesser: two
    runs may be made under one condition. A case has so many `samples`.
    """

    name: str
    rights: tuple[float, ...]
    run: str = ""
    is_rule: bool = False
    samples: int = 1

    @property
    def accuracy(self) -> Measured:
        """The mean over the cases, with the interval that the run has in every table."""
        return share_interval(self.rights, samples=self.samples)


class StrongestGain(NamedTuple):
    """A run's gain over the strongest of its rivals, in points and as a share of the possible gain over it.

    `has_own_blind` says whether an image-free run of the same model was among the rivals.
    """

    rival: RivalAnswers
    gain: Measured
    normalised: Measured
    has_own_blind: bool


def guesser_answers(guesses: Guesses, golds: Iterable[tuple[int, str | None]]) -> RivalAnswers:
    """A guesser on cases with their right letters; a case it could not be asked about (a defective one) is wrong."""
    rights = tuple(float(guesses.letters.get(case) == gold) for case, gold in golds)
    return RivalAnswers(guesses.name, rights, is_rule=guesses.source == "rule")


def image_free_name(mine: Fields | None, other: Fields | None) -> str | None:
    """The name of the other condition if it is a run's condition without images and differs in nothing else."""
    match changed_fields(mine, other):
        case {"image_share": 0.0, **rest} if not rest:
            return "own run without images"
        case {"swap_images": True, **rest} if not rest:
            return "own run with another case's images"
        case {"image_share": 0.0, "show_history": False, **rest} if not rest:
            return "own run, options only"
    return None


def changed_fields(mine: Fields | None, other: Fields | None) -> Fields:
    """The other condition's fields that differ from a run's; a submission file may state no condition."""
    known = mine or {}
    return {field: value for field, value in (other or {}).items() if known.get(field) != value}


def strongest_rival(rivals: Iterable[RivalAnswers]) -> RivalAnswers:
    """The rival with the highest accuracy; of equals, a guesser before a run, and the rule before those trained."""

    def order(one: RivalAnswers) -> tuple[float, bool, bool, str, str]:
        # Shares of samples are rounded when stored, which must not decide between equals.
        return -round(fsum(one.rights), 6), one.run != "", not one.is_rule, one.name, one.run

    return min(rivals, key=order)


def gain_over_strongest(
    rights: Sequence[float], rivals: Sequence[RivalAnswers], *, rng: np.random.Generator
) -> StrongestGain:
    """The gain of a run with these shares of right answers; `rng` is that of `gain_rng`."""
    over = gain_over_rivals(rights, [one.rights for one in rivals], rng=rng)
    return StrongestGain(
        rival=strongest_rival(rivals),
        gain=over.gain,
        normalised=over.normalised,
        has_own_blind=any(one.name in _IMAGE_FREE for one in rivals),
    )


def gain_rng(text_fingerprint: str) -> np.random.Generator:
    """The generator for a gain: the same for a run wherever it is shown."""
    return np.random.default_rng(seed_from("audit", text_fingerprint))
