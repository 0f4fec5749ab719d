"""The fields of a condition, one entry each: flag, help, range, and how a value is shown in labels.

The command line, the label of a condition, the names of runs in a report and the command that reproduces a run all use
this table. A new field is a line of `Condition`, an entry here, and its effect.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from medthink.core.errors import UsageError

_LARGEST_SEED = 2**63 - 1


class ConditionField(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a condition.

    `say` formats a value. `sets` is what a switch sets the field to. Other flags take a value: one of
    `choices`, a number from `low` to `high`, or a text that `read` turns into the value and `write` back.
    """

    name: str
    help: str
    say: Callable[[Any], str]
    flag: str = ""
    sets: bool | None = None
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    whole: bool = True
    metavar: str = ""
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str

    @property
    def option(self) -> str:
        """The flag on the command line."""
        return self.flag or "--" + self.name.replace("_", "-")

    @property
    def parameter(self) -> str:
        """The flag's name as a keyword."""
        return self.option.removeprefix("--").replace("-", "_")

    def words(self, value: Any) -> list[str]:
        """The flag that gives the field this value."""
        return [self.option] if self.sets is not None else [self.option, self.write(value)]

    def refuse_out_of_range(self, value: Any) -> None:
        """Raise UsageError unless a number lies within the range; NaN does not."""
        if value is None or self.low is None:
            return
        if not (value >= self.low and (self.high is None or value <= self.high)):
            allowed = f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"
            raise UsageError(f"{self.name} is {value}", remedy=f"give {allowed}")


def parse_share(text: str) -> float:
    """Read a share of images: "40%", "40" and "0.4" are the same; a bare 1 is the whole."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        raise UsageError(f"not a share of images: {text!r}", remedy='write "40%", "40" or "0.4"') from None
    share = value / 100 if "%" in text or value > 1 else value
    if not 0 <= share <= 1:
        raise UsageError(f"the share of images is not within 0 and 100 %: {text!r}", remedy="write 0 to 100")
    return share


def _write_share(share: float) -> str:
    percent = f"{share * 100:g}%"
    return percent if parse_share(percent) == share else repr(share)


def _read_option_order(text: str) -> str | int:
    if text.isdecimal():
        return int(text)
    if text in ("as_is", "seeded"):
        return text
    raise UsageError(
        f"--option-order: {text!r} is neither as_is, seeded nor a number", remedy="write one of these, such as 1"
    )


def _say_option_order(order: str | int) -> str:
    return f"options rotated by {order}" if isinstance(order, int) else f"options {order}"


def _named(name: str) -> Callable[[Any], str]:
    return lambda value: f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _either(yes: str, no: str) -> Callable[[Any], str]:
    return lambda value: yes if value else no


_SOURCES = ("none", "expert", "self")

FIELDS: tuple[ConditionField, ...] = (
    ConditionField(
        name="image_share",
        help="Share of each case's images, such as 40%.  [default: 100%]",
        say=lambda share: f"{share * 100:g} % images",
        metavar="SHARE",
        low=0,
        high=1,
        read=parse_share,
        write=_write_share,
    ),
    ConditionField(
        name="image_choice",
        help="Which images make the share: the first, spread over the case, or drawn.  [default: first]",
        say=_named("image choice"),
        choices=("first", "spread", "seeded"),
    ),
    ConditionField(
        name="image_order",
        help="The order in which they are shown. [default: as_is]",
        say=_named("image order"),
        choices=("as_is", "reversed", "seeded"),
    ),
    ConditionField(
        name="swap_images",
        help="Show another case's images, to test whether the model looks at them.",
        say=_either("swapped images", "own images"),
        sets=True,
    ),
    ConditionField(
        name="show_history",
        help="Do not show the clinical history.",
        say=_either("history", "no history"),
        flag="--hide-history",
        sets=False,
    ),
    ConditionField(
        name="show_options",
        help="Do not show the options: free-text diagnosis.",
        say=_either("options", "no options"),
        flag="--hide-options",
        sets=False,
    ),
    ConditionField(
        name="option_order",
        help="as_is, seeded, or a number k: rotate by k letters.  [default: as_is]",
        say=_say_option_order,
        metavar="ORDER",
        read=_read_option_order,
    ),
    ConditionField(
        name="findings",
        help="Step 1, findings per image: the expert's or the model's own.  [default: self for twi, else none]",
        say=lambda source: f"{source} findings",
        choices=_SOURCES,
    ),
    ConditionField(
        name="summary",
        help="Step 2, summary of all images: the same choices.",
        say=lambda source: f"{source} summary",
        choices=_SOURCES,
    ),
    ConditionField(
        name="single_call",
        help="twi: ask for all three steps in one reply.",
        say=_either("single call", "several calls"),
        sets=True,
    ),
    ConditionField(
        name="prompt_set",
        help="default, brief, or the path of a folder of your own.  [default: default]",
        say=_named("prompts"),
        metavar="NAME",
    ),
    ConditionField(
        name="use_schema",
        help="Ask for JSON in words only, for servers without schema support.",
        say=_either("schema", "no schema"),
        flag="--no-schema",
        sets=False,
    ),
    ConditionField(
        name="image_max_side",
        help="Shrink images to this longest side.",
        say=_named("side ≤"),
        flag="--max-side",
        metavar="PX",
        low=1,
    ),
    ConditionField(
        name="image_max_bytes",
        help="Shrink images to this many bytes.",
        say=_named("bytes ≤"),
        flag="--max-bytes",
        metavar="N",
        low=1,
    ),
    ConditionField(
        name="effort",
        help="Reasoning effort, by the provider's own parameter.",
        say=_named("effort"),
        choices=("none", "minimal", "low", "medium", "high", "xhigh"),
    ),
    ConditionField(
        name="temperature",
        help="Sampling temperature.",
        say=_named("temperature"),
        metavar="T",
        low=0,
        high=2,
        whole=False,
    ),
    ConditionField(
        name="max_tokens",
        help="Maximum tokens per reply.",
        say=_named("max tokens"),
        metavar="N",
        low=1,
    ),
    ConditionField(
        name="samples",
        help="Answers per case.  [default: 1]",
        say=_named("samples"),
        metavar="N",
        low=1,
    ),
    ConditionField(
        name="seed",
        help="Seed for random choices: images, options, swapped images. [default: 0]",
        say=_named("seed"),
        metavar="N",
        low=0,
        high=_LARGEST_SEED,
    ),
    ConditionField(
        name="model_seed",
        help="Seed sent to the model, and N + k with sample k.",
        say=_named("model seed"),
        metavar="N",
        low=0,
        high=_LARGEST_SEED,
    ),
)
FIELD: dict[str, ConditionField] = {field.name: field for field in FIELDS}
