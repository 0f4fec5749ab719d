"""A question as a condition shows it, and the mapping back from its letters."""

from typing import Literal

import msgspec

from medthink.cases.case import Image, Question
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.workflow.condition import Condition, OptionOrder
from medthink.workflow.subset import choose, shuffle


class ShownImage(Image, frozen=True):
    """An image as shown: its bytes can be read, and its repr shows no file name."""

    def __repr__(self) -> str:
        return f"ShownImage(slot={self.slot})"


class Shown(msgspec.Struct, frozen=True):
    """The question as shown, and the mapping back.

    `letters` maps each letter shown to the letter in the benchmark's file; `positions` says which of the case's images
    (or the donor's) each image shown is, counted from 0.
    """

    question: Question
    letters: dict[str, str]
    positions: tuple[int, ...]

    def original(self, letter: str | None) -> str | None:
        """The file's letter for a letter shown; None stays None."""
        return None if letter is None else self.letters[letter]


def apply(condition: Condition, question: Question, donor: Question | None = None) -> Shown:
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
    chosen = choose(total, share=condition.image_share, choice=condition.image_choice, key=key)
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
