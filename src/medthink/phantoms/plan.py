"""The plan of one case: disease, options, images and timepoints; no words and no pixels yet.

A case depends only on the seed and its number, not on how many cases are made or by how many processes.
"""

from random import Random

import msgspec

from medthink.cases.case import MAX_IMAGES
from medthink.core.digest import seed_from
from medthink.phantoms.atlas import Axis, Disease, Family, View, families, option_sets

_CHART = View(
    painter="chart",
    modality="Non-modality / Workflow / Post-processing",
    sub="Diagram / Chart",
    leads=("Chart of a laboratory value during the hospital stay", "Time course of the inflammatory markers"),
    normal=("fluctuations without a trend", "unspecific variation"),
    signs={},
)
_LONGITUDINAL_SHARE = 0.304
_NORMAL_SHARE, _CHART_SHARE, _SECOND_VIEW_SHARE = 0.10, 0.015, 0.06
# How often a case stays with the modality of an earlier axis when it can: 2.3 modalities a case on average.
_SAME_MODALITY_SHARE = 0.5
# The median and the spread of the images beyond one per axis: 6.6 images a case on average, a tail that reaches 49.
_EXTRA_MEDIAN, _EXTRA_SPREAD = 2.75, 0.9
_INTERVALS = (
    "2 weeks", "6 weeks", "3 months", "6 months", "1 year", "18 months", "2 years", "3 years", "5 years",
)  # fmt: skip
_UNKNOWN_INTERVAL_SHARE = 0.1
# How large the signs are at the last timepoint, against the first.
_COURSES = {"regressing": 0.78, "stable": 1.0, "progressing": 1.25}


class PlannedImage(msgspec.Struct, frozen=True):
    """One image to be painted: `axis` and `sign` say what it shows; None and "" if it shows nothing."""

    id: str
    axis: int | None
    sign: str
    view: View
    timepoint: int
    size: float


class CasePlan(msgspec.Struct, frozen=True):
    """The plan of one case, without words and pixels."""

    number: int
    family: str
    options: tuple[Disease, ...]
    answer: int
    side: str
    intervals: tuple[str, ...]
    course: str
    shots: tuple[PlannedImage, ...]

    @property
    def disease(self) -> Disease:
        """The right disease."""
        return self.options[self.answer]


def plan_case(seed: int, number: int) -> CasePlan:
    """Plan the case with this number."""
    chance = Random(seed_from("phantom", seed, number))
    name = _pick_family(chance)
    options, answer = _pick_options(chance, name, seed, number)
    count = image_count(seed, number)
    timepoints = (
        min(count, chance.choices((2, 3, 4), (0.7, 0.2, 0.1))[0]) if chance.random() < _LONGITUDINAL_SHARE else 1
    )
    intervals = tuple(_INTERVALS[at] for at in sorted(chance.sample(range(len(_INTERVALS)), timepoints - 1)))
    if intervals and chance.random() < _UNKNOWN_INTERVAL_SHARE:
        intervals = ("unknown",) * len(intervals)
    course = chance.choice(list(_COURSES))
    return CasePlan(
        number=number,
        family=name,
        options=options,
        answer=answer,
        side=chance.choice(("left", "right")),
        intervals=intervals,
        course=course,
        shots=_shots(chance, families()[name], options[answer], (count, timepoints, course)),
    )


def plan_raw_case(seed: int, number: int, *, options: int, images: int) -> CasePlan:
    """Plan a raw teaching case: as many diseases of one family as asked for, any of which may be the right one."""
    chance = Random(seed_from("raw phantom", seed, number))
    name = _pick_family(chance)
    family = families()[name]
    listed = chance.sample(family.diseases, min(options, len(family.diseases)))
    answer = chance.randrange(len(listed))
    count = max(images, len(family.axes))
    return CasePlan(
        number=number,
        family=name,
        options=tuple(listed),
        answer=answer,
        side=chance.choice(("left", "right")),
        intervals=(),
        course="stable",
        shots=_shots(chance, family, listed[answer], (count, 1, "stable"))[:images],
    )


def image_count(seed: int, number: int) -> int:
    """The number of images of a case: at least one per axis, at most 49."""
    extra = Random(seed_from("images", seed, number)).lognormvariate(0, _EXTRA_SPREAD) * _EXTRA_MEDIAN
    return min(3 + int(extra), MAX_IMAGES)


def answer_place(seed: int, number: int, what: str) -> int:
    """A position from 0 to 4; each block of five cases uses all five, in random order."""
    block, at = divmod(number - 1, 5)
    return Random(seed_from(what, seed, block)).sample(range(5), 5)[at]


def _pick_family(chance: Random) -> str:
    names = list(families())
    return chance.choices(names, [families()[name].weight for name in names])[0]


def _pick_options(chance: Random, family: str, seed: int, number: int) -> tuple[tuple[Disease, ...], int]:
    """Five diseases in the order of their letters, and which one is right.

    The right one is chosen by the rank of its length and placed at its letter, both evenly, so neither is informative.
    """
    five = sorted(chance.choice(option_sets(family)), key=lambda disease: (len(disease.name), disease.name))
    right = five.pop(answer_place(seed, number, "length"))
    chance.shuffle(five)
    answer = answer_place(seed, number, "letter")
    five.insert(answer, right)
    return tuple(five), answer


def _shots(chance: Random, family: Family, disease: Disease, shape: tuple[int, int, str]) -> tuple[PlannedImage, ...]:
    """Every axis at least once, in random order; further images show any axis, or nothing of note."""
    count, timepoints, course = shape
    homes = _homes(chance, family)
    axes: list[int | None] = [*range(len(family.axes))]
    axes += [_any_axis(chance, family) for _ in range(count - len(axes))]
    chance.shuffle(axes)
    base = chance.uniform(0.92, 1.08)
    shots = []
    for at, axis in enumerate(axes):
        timepoint = at * timepoints // count
        growth = _COURSES[course] ** (timepoint / max(1, timepoints - 1))
        size = round(base * growth * chance.uniform(0.97, 1.03), 3)
        view, sign = _view(chance, family.axes, homes, axis), disease.profile[axis] if axis is not None else ""
        shots.append(PlannedImage(_image_id(chance), axis, sign, view, timepoint, size))
    return tuple(shots)


def _homes(chance: Random, family: Family) -> list[View]:
    """The view of each axis that a case keeps to."""
    homes: list[View] = []
    for axis in family.axes:
        known = {view.modality for view in homes}
        same = [view for view in axis.views if view.modality in known]
        homes.append(chance.choice(same if same and chance.random() < _SAME_MODALITY_SHARE else axis.views))
    return homes


def _any_axis(chance: Random, family: Family) -> int | None:
    return None if chance.random() < _NORMAL_SHARE else chance.randrange(len(family.axes))


def _view(chance: Random, axes: tuple[Axis, ...], homes: list[View], axis: int | None) -> View:
    """The view this case uses for the axis, occasionally another one."""
    if axis is None:
        return _CHART if chance.random() < _CHART_SHARE / _NORMAL_SHARE else chance.choice(homes)
    return chance.choice(axes[axis].views) if chance.random() < _SECOND_VIEW_SHARE else homes[axis]


def _image_id(chance: Random) -> str:
    """Eight characters without a meaning; the first is a letter or digit, so that no tool mistakes it for an option."""
    plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return chance.choice(plain) + "".join(chance.choices(plain + "_-", k=7))
