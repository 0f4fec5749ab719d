"""The condition a run is made under, as data: what is shown, in which order, and how it is asked.

Two runs may be compared if their conditions differ only in what is under study; so a condition is hashed, stored and
printed with every number.
"""

from typing import Literal

import msgspec
from msgspec.structs import force_setattr

from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.models.request import Effort
from medthink.workflow.fields import FIELD, FIELDS

ImageChoice = Literal["first", "spread", "seeded"]
ImageOrder = Literal["as_is", "reversed", "seeded"]
OptionOrder = Literal["as_is", "seeded"] | int
# "task": the task's default, its own steps where it writes them and none elsewhere; resolved before anything is asked.
CueSource = Literal["none", "expert", "self", "task"]
ConditionKind = Literal["unaided", "expert-cued"]
# The fields that the words about images are made of.
_IN_IMAGES = ("image_share", "image_choice", "image_order", "swap_images")
# Values that say no more than the default does.
_UNSAID = {"findings": "none", "summary": "none"}


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is shown of each case, and how it is asked.

    `option_order` is "as_is", "seeded", or a number k: every option moves by k letters, the last ones to the front.
    `image_max_side` and `image_max_bytes` allow images to be resized; without them every image is sent unchanged.
    `effort`, `temperature` and `max_tokens` are the provider's defaults if None. `seed` determines what is shown at
    random; `model_seed` goes to the model, raised by one for each further sample.
    """

    image_share: float = 1.0
    image_choice: ImageChoice = "first"
    image_order: ImageOrder = "as_is"
    swap_images: bool = False
    show_history: bool = True
    show_options: bool = True
    option_order: OptionOrder = "as_is"
    findings: CueSource = "task"
    summary: CueSource = "task"
    single_call: bool = False
    prompt_set: str = "default"
    use_schema: bool = True
    image_max_side: int | None = None
    image_max_bytes: int | None = None
    effort: Effort | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    samples: int = 1
    seed: int = 0
    model_seed: int | None = None

    def __post_init__(self) -> None:
        # 1 and 1.0 are one share and one digest.
        force_setattr(self, "image_share", float(self.image_share))
        if self.temperature is not None:
            force_setattr(self, "temperature", float(self.temperature))
        for field in FIELDS:
            field.refuse_out_of_range(getattr(self, field.name))
        _refuse_contradiction(self)

    @property
    def kind(self) -> ConditionKind:
        """Whether the model sees only the question, or also an expert's words."""
        return "expert-cued" if "expert" in (self.findings, self.summary) else "unaided"

    @property
    def is_unaided(self) -> bool:
        """Whether nothing withheld is shown."""
        return self.kind == "unaided"

    def digest(self) -> str:
        """SHA-256 over every field: equal conditions, equal digests."""
        return digest_value(msgspec.to_builtins(self))

    def label(self) -> str:
        """The condition in one line: its kind, its images, and everything that differs from the default."""
        return " · ".join([self.kind, _describe_images(self), *_describe_rest(self)])

    def __str__(self) -> str:
        return self.label()


def _refuse_contradiction(condition: Condition) -> None:
    if isinstance(condition.option_order, int) and condition.option_order < 1:
        raise UsageError(
            f"option_order is {condition.option_order}", remedy='write "as_is", "seeded" or a rotation of at least 1'
        )
    if condition.option_order != "as_is" and not condition.show_options:
        raise UsageError("hidden options have no order", remedy="show the options, or leave option_order out")
    if condition.swap_images and condition.findings == "expert":
        raise UsageError(
            "expert findings describe the case's own images, not those swapped in", remedy="leave out one of the two"
        )
    if not condition.prompt_set:
        raise UsageError("prompt_set is empty", remedy='name a prompt set, such as "default"')


def _describe_images(condition: Condition) -> str:
    words = f"{condition.image_share * 100:g} % of images"
    if 0 < condition.image_share < 1:
        words += f" ({condition.image_choice})"
    if condition.image_order != "as_is":
        words += f", {condition.image_order}"
    return words + (", of another case" if condition.swap_images else "")


def _describe_rest(condition: Condition) -> list[str]:
    """What differs from the default, in the order of the fields."""
    unsaid = {name: {getattr(DEFAULT, name), _UNSAID.get(name)} for name in FIELD if name not in _IN_IMAGES}
    values = {name: getattr(condition, name) for name in unsaid}
    return [FIELD[name].say(value) for name, value in values.items() if value not in unsaid[name]]


DEFAULT = Condition()
