"""The condition a run is made under, as data: what is shown, in which order, and how it is asked.

Two runs may be compared if their conditions differ only in what is under study; therefore a condition is hashed, stored
and printed with every number.
"""

from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec.structs import force_setattr, replace

from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.models.request import Effort, ImageDetail

LARGEST_SEED = 2**63 - 1
BY_TASK = "task"
"""The value that leaves the choice to the task; it has no flag."""


class ConditionField(msgspec.Struct, frozen=True):
    """One field of a condition.

    `say` formats a value. `switch` is the pair of flags for true and for false. Other flags take a value: one of
    `choices`, a number from `low` to `high`, or a text that `read` turns into the value and `write` back.
    Name, choices and kind of number are those of the field in its struct; see `read_field`.
    """

    help: str
    name: str = ""
    say: Callable[[Any], str] = str
    flag: str = ""
    switch: str = ""
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    whole: bool = True
    metavar: str = ""
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str

    @property
    def option(self) -> str:
        """The flag on the command line; of a switch, the one for true."""
        return self.flag or self.switch.partition("/")[0] or "--" + self.name.replace("_", "-")

    @property
    def parameter(self) -> str:
        """The flag's name as a keyword."""
        return self.option.removeprefix("--").replace("-", "_")

    def words(self, value: Any) -> list[str]:
        """The flags that set the field to this value."""
        if self.switch:
            yes, _, no = self.switch.partition("/")
            return [yes if value else no]
        return [self.option, self.write(value)]

    def refuse_out_of_range(self, value: Any) -> None:
        """Raise UsageError unless a number lies within the range; NaN does not."""
        if value is None or self.low is None:
            return
        if not (value >= self.low and (self.high is None or value <= self.high)):
            allowed = f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"
            raise UsageError(f"{self.name} is {value}", remedy=f"give {allowed}")


def _switch(name: str) -> str:
    flag = name.replace("_", "-")
    return f"--{flag}/--no-{flag}"


def read_field(info: msgspec.structs.FieldInfo) -> ConditionField:
    """What a field is annotated with, completed by its name, type and default."""
    field: ConditionField = info.type.__metadata__[0]
    kind = info.type.__origin__
    if NoneType in get_args(kind):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    return replace(
        field,
        name=info.name,
        say=named(info.name.replace("_", " ")) if field.say is str else field.say,
        switch=field.switch or (_switch(info.name) if kind is bool else ""),
        choices=tuple(one for one in choices if one != BY_TASK),
        whole=kind is int,
        metavar=field.metavar or ("N" if kind is int else ""),
    )


def parse_share(text: str) -> float:
    """Read a share of images: "40%", "40" and "0.4" are the same; a bare 1 means all."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        raise UsageError(f"not a share of images: {text!r}", remedy='write "40%", "40" or "0.4"') from None
    share = value / 100 if "%" in text or value > 1 else value
    if not 0 <= share <= 1:
        raise UsageError(f"the share of images is not within 0 and 100 %: {text!r}", remedy="write 0 to 100")
    return share


def write_share(share: float) -> str:
    """The share as `parse_share` reads it back."""
    percent = f"{share * 100:g}%"
    return percent if parse_share(percent) == share else repr(share)


def read_option_order(text: str) -> str | int:
    """Read an order of options: as-is, seeded or a number."""
    if text.isdecimal():
        return int(text)
    if (order := text.replace("-", "_")) in ("as_is", "seeded"):
        return order
    raise UsageError(
        f"--option-order: {text!r} is neither as-is, seeded nor a number", remedy="write one of these, such as 1"
    )


def say_option_order(order: str | int) -> str:
    """The order of options in a label."""
    return f"options rotated by {order}" if isinstance(order, int) else f"options {order}"


def named(name: str) -> Callable[[Any], str]:
    """Formats a value after a name."""
    return lambda value: f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def either(yes: str, no: str) -> Callable[[Any], str]:
    """Formats a Boolean as one of two phrases."""
    return lambda value: yes if value else no


ImageChoice = Literal["first", "spread", "seeded"]
ImageOrder = Literal["as_is", "reversed", "seeded"]
OptionOrder = Literal["as_is", "seeded"] | int
# "task": the task's default, its own steps where it writes them and none elsewhere; resolved before anything is asked.
CueSource = Literal["none", "expert", "self", "task"]
ConditionKind = Literal["unaided", "expert-cued"]
# The fields that the text about images is made of.
_IN_IMAGES = ("image_share", "image_choice", "image_order", "swap_images")
# Values that say no more than the default does.
_UNSAID = {"findings": "none", "summary": "none"}


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which parts of each case are shown, and how it is asked.

    `option_order` is "as_is", "seeded", or a number k: every option moves by k letters, the last ones to the front;
    moved by 0 they are as they were.
    `image_max_side` and `image_max_bytes` allow images to be resized; without them every image is sent unchanged.
    `effort`, `temperature` and `max_tokens` are the provider's defaults if None, and `image_detail` is the level that
    shrinks least. `seed` determines what is shown at random; `model_seed` goes to the model, raised by one for each
    further sample. A new field is a line here and its effect: flag, help, range and label come from its annotation.
    """

    image_share: Annotated[float, ConditionField(
        "Share of each case's images, such as 40%.  [default: 100%]",
        say=lambda share: f"{share * 100:g} % images", metavar="SHARE", low=0, high=1, read=parse_share,
        write=write_share,
    )] = 1.0  # fmt: skip
    image_choice: Annotated[
        ImageChoice,
        ConditionField(
            "Which images are shown: the first ones, evenly spread ones, or a random choice.  [default: first]"
        ),
    ] = "first"
    image_order: Annotated[
        ImageOrder, ConditionField("The order in which they are shown.  [default: as-is]")
    ] = "as_is"  # fmt: skip
    swap_images: Annotated[bool, ConditionField(
        "Show another case's images, to test whether the model looks at them.",
        say=either("swapped images", "own images"),
    )] = False  # fmt: skip
    show_history: Annotated[bool, ConditionField(
        "Show the clinical history.  [default: yes]", say=either("history", "no history"),
        switch="--show-history/--hide-history",
    )] = True  # fmt: skip
    show_options: Annotated[bool, ConditionField(
        "Show the options; without them the diagnosis is free text.  [default: yes]",
        say=either("options", "no options"), switch="--show-options/--hide-options",
    )] = True  # fmt: skip
    option_order: Annotated[OptionOrder, ConditionField(
        "as-is, seeded, or a number k: rotate by k letters.  [default: as-is]",
        say=say_option_order, metavar="ORDER", read=read_option_order,
    )] = "as_is"  # fmt: skip
    findings: Annotated[CueSource, ConditionField(
        "Step 1, findings per image: the expert's or the model's own.  [default: self for twi, else none]",
        say=lambda source: f"{source} findings",
    )] = "task"  # fmt: skip
    summary: Annotated[CueSource, ConditionField(
        "Step 2, summary of all images: the same choices.", say=lambda source: f"{source} summary"
    )] = "task"  # fmt: skip
    single_call: Annotated[bool, ConditionField(
        "twi: ask for all three steps in one reply.", say=either("single call", "several calls")
    )] = False  # fmt: skip
    prompt_set: Annotated[str, ConditionField(
        "default, brief, or the path of your own prompt folder.  [default: default]",
        say=named("prompts"), metavar="NAME",
    )] = "default"  # fmt: skip
    use_schema: Annotated[bool, ConditionField(
        "Send the schema of the reply; without it JSON is asked for in the prompt only, for servers that do not "
        "support JSON schemas.  [default: yes]", say=either("schema", "no schema"), switch="--schema/--no-schema",
    )] = True  # fmt: skip
    image_max_side: Annotated[int | None, ConditionField(
        "Shrink images to this longest side.", say=named("side ≤"), flag="--max-side", metavar="PX", low=1
    )] = None  # fmt: skip
    image_max_bytes: Annotated[int | None, ConditionField(
        "Shrink images to this many bytes.", say=named("bytes ≤"), flag="--max-bytes", low=1
    )] = None  # fmt: skip
    image_detail: Annotated[ImageDetail | None, ConditionField(
        "How finely OpenAI or Gemini looks at images, by its own levels.  [default: OpenAI's finest, Gemini's own]"
    )] = None  # fmt: skip
    effort: Annotated[Effort | None, ConditionField("Reasoning effort, by the provider's own parameter.")] = None
    temperature: Annotated[
        float | None, ConditionField("Sampling temperature.", metavar="T", low=0, high=2)
    ] = None  # fmt: skip
    max_tokens: Annotated[int | None, ConditionField("Maximum tokens per reply.", low=1)] = None
    samples: Annotated[int, ConditionField("Answers per case.  [default: 1]", low=1)] = 1
    seed: Annotated[int, ConditionField(
        "Seed of every random choice.  [default: 0]", low=0, high=LARGEST_SEED
    )] = 0  # fmt: skip
    model_seed: Annotated[int | None, ConditionField(
        "Seed sent to the model; sample k is sent N + k.", low=0, high=LARGEST_SEED
    )] = None  # fmt: skip

    def __post_init__(self) -> None:
        # 1 and 1.0 are one share and one digest.
        force_setattr(self, "image_share", float(self.image_share))
        force_setattr(self, "option_order", _plain_order(self.option_order))
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
        """Whether no withheld text is shown."""
        return self.kind == "unaided"

    def digest(self) -> str:
        """SHA-256 over every field: equal conditions, equal digests."""
        return digest_value(msgspec.to_builtins(self))

    def label(self) -> str:
        """The condition in one line: its kind, its images, and everything that differs from the default."""
        return " · ".join([self.kind, _describe_images(self), *_describe_rest(self)])

    def __str__(self) -> str:
        return self.label()


FIELDS: tuple[ConditionField, ...] = tuple(read_field(info) for info in msgspec.structs.fields(Condition))
FIELD: dict[str, ConditionField] = {field.name: field for field in FIELDS}


def _plain_order(order: OptionOrder | str) -> OptionOrder:
    """The order in its one form, also of a number that a plan or a task of Inspect has as text."""
    if isinstance(order, str) and order.isdecimal():
        order = int(order)
    if order in ("as_is", "seeded") or (type(order) is int and order > 0):
        return order
    if order == 0 and type(order) is int:
        return "as_is"
    raise UsageError(f"option_order is {order!r}", remedy='write "as_is", "seeded" or a number, such as 1')


def _refuse_contradiction(condition: Condition) -> None:
    if condition.option_order != "as_is" and not condition.show_options:
        raise UsageError("hidden options have no order", remedy="show the options, or leave option_order out")
    for name in ("findings", "summary"):
        if condition.swap_images and getattr(condition, name) == "expert":
            problem = f"the expert {name} would describe the case's own images, not those swapped in"
            raise UsageError(problem, remedy="leave out one of the two")
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
