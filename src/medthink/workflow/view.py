"""A question as a condition shows it, and the mapping back from its letters."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Literal

import msgspec

from medthink.cases.case import Case, Image, Question, Reference
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.workflow.condition import Condition, ImageChoice, OptionOrder

if TYPE_CHECKING:
    from medthink.cases.benchmark import Benchmark


@cache
def count_shown(total: int, share: float) -> int:
    """The number of images in a share of `total`: rounded up, so that any share above 0 shows at least one."""
    # The share is read as the decimal it was written as: in binary floats, 7 % of 100 images would come to 8.
    return ceil(Fraction(repr(share)) * total)


def choose_images(total: int, *, share: float, choice: ImageChoice, key: int) -> tuple[int, ...]:
    """The positions shown, ascending; a smaller share's positions are always among a larger one's."""
    return tuple(sorted(rank_images(total, choice=choice, key=key)[: count_shown(total, share)]))


def rank_images(total: int, *, choice: ImageChoice, key: int) -> list[int]:
    """All positions in the order in which a growing share adds them."""
    match choice:
        case "first":
            return list(range(total))
        case "spread":
            return _spread(total)
        case "seeded":
            return shuffle(range(total), key=key)


def shuffle(positions: Iterable[int], *, key: int) -> list[int]:
    """Positions in an order that depends on the key alone."""
    return sorted(positions, key=lambda position: seed_from(key, position))


def image_sources(case_ids: Iterable[int], seed: int) -> dict[int, int]:
    """For each case another case that provides its images; every case is used exactly once."""
    ring: Sequence[int] = sorted(set(case_ids), key=lambda case_id: seed_from("donor", seed, case_id))
    if len(ring) < 2:
        raise UsageError("no other case to take images from", remedy="swapping needs at least two cases")
    return dict(zip(ring, [*ring[1:], ring[0]], strict=True))


def _spread(total: int) -> list[int]:
    """First, last, then repeatedly the middle of the widest gap, the leftmost of equal ones."""
    taken = list(dict.fromkeys([0, total - 1])) if total else []
    order = list(taken)
    while len(order) < total:
        left, right = max(pairwise(taken), key=lambda gap: gap[1] - gap[0])
        middle = (left + right) // 2
        taken.insert(taken.index(right), middle)
        order.append(middle)
    return order


class ShownImage(Image, frozen=True):
    """An image as shown: its bytes can be read, and its repr shows no file name."""

    def __repr__(self) -> str:
        return f"ShownImage(slot={self.slot})"


class Shown(msgspec.Struct, frozen=True):
    """The question as shown, and the mapping back.

    `letters` maps each letter shown to the letter in the benchmark's file; `positions` says which of the images of the
    case (or of the image source) each image shown is, counted from 0.
    """

    question: Question
    letters: dict[str, str]
    positions: tuple[int, ...]

    def original(self, letter: str | None) -> str | None:
        """The file's letter for a letter shown; None stays None."""
        return None if letter is None else self.letters[letter]


def show_under_condition(condition: Condition, question: Question, donor: Question | None = None) -> Shown:
    """Show the question under the condition; `donor` is the case whose images are swapped in."""
    if condition.swap_images != (donor is not None):
        raise UsageError(
            "a donor case is needed exactly when the condition swaps images",
            remedy="set swap_images, or give no donor",
        )
    images = (donor or question).images
    positions = _place_images(condition, question, len(images))
    letters = _reletter(question, condition.option_order, condition.seed) if condition.show_options else {}
    shown = Question(
        history=question.history if condition.show_history else "",
        images=tuple(_quiet(images[position]) for position in positions),
        options={letter: question.options[original] for letter, original in letters.items()},
    )
    return Shown(shown, letters, positions)


def _place_images(condition: Condition, question: Question, total: int) -> tuple[int, ...]:
    key = _key("choice", question, condition.seed) if condition.image_choice == "seeded" else 0
    chosen = choose_images(total, share=condition.image_share, choice=condition.image_choice, key=key)
    match condition.image_order:
        case "as_is":
            return chosen
        case "reversed":
            return chosen[::-1]
        case "seeded":
            return tuple(shuffle(chosen, key=_key("order", question, condition.seed)))


def _reletter(question: Question, order: OptionOrder, seed: int) -> dict[str, str]:
    letters = list(question.options)
    if order == "seeded":
        positions = shuffle(range(len(letters)), key=_key("options", question, seed))
        originals = [letters[position] for position in positions]
    else:
        turn = 0 if order == "as_is" else order % max(1, len(letters))
        originals = letters[-turn:] + letters[:-turn] if turn else letters
    return dict(zip(letters, originals, strict=True))


def _quiet(image: Image) -> ShownImage:
    return ShownImage(slot=image.slot, id=image.id, path=image.path, store=image.store)


def _key(purpose: Literal["choice", "order", "options"], question: Question, seed: int) -> int:
    """A seed for this question, from its words, because a question does not know its case's number."""
    return seed_from(purpose, seed, question.history, *question.options.values())


class Cues(msgspec.Struct, frozen=True):
    """The expert's words; None where the condition gives none. `findings` is parallel to the images shown."""

    findings: tuple[str, ...] | None = None
    summary: str | None = None


NO_CUES = Cues()


def expert_cues(reference: Reference, condition: Condition, shown: Shown) -> Cues:
    """The expert's words that the condition asks for; must not be called for an unaided condition."""
    if condition.is_unaided:
        raise UsageError("an unaided condition takes no expert cues", remedy="use NO_CUES")
    return Cues(
        findings=_captions(reference, shown) if condition.findings == "expert" else None,
        summary=reference.findings if condition.summary == "expert" else None,
    )


def _captions(reference: Reference, shown: Shown) -> tuple[str, ...]:
    """The captions of exactly the images shown, in the order shown."""
    return tuple(reference.images[position].caption for position in shown.positions)


class Showing:
    """A condition over a benchmark's split, which provides the images if they are swapped."""

    def __init__(self, condition: Condition, benchmark: "Benchmark") -> None:
        self._condition = condition
        self._benchmark = benchmark
        self._donors = image_sources([case.id for case in benchmark], condition.seed) if condition.swap_images else {}

    def show(self, case: Case) -> tuple[Shown, Cues]:
        """The case as shown, and the cues that go with it."""
        shown = self._apply(case)
        cues = NO_CUES if self._condition.is_unaided else expert_cues(case.reference, self._condition, shown)
        return shown, cues

    def _apply(self, case: Case) -> Shown:
        if not self._condition.swap_images:
            return show_under_condition(self._condition, case.question)
        other = self._benchmark.case(self._donors[case.id])
        return show_under_condition(self._condition, case.question, other.question)
