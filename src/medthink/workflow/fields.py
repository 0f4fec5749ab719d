"""What a field of a condition says of itself: flag, help, range, and how a value is shown in labels.

The command line, the label of a condition, the names of runs in a report and the command that reproduces a run all read
it from the fields of `Condition`.
"""

from collections.abc import Callable
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec.structs import replace

from medthink.core.errors import UsageError

LARGEST_SEED = 2**63 - 1
BY_TASK = "task"
"""The value that leaves the choice to the task; no flag gives it."""


class ConditionField(msgspec.Struct, frozen=True):
    """One field of a condition.

    `say` formats a value. `sets` is what a switch sets the field to. Other flags take a value: one of
    `choices`, a number from `low` to `high`, or a text that `read` turns into the value and `write` back.
    Name, switch, choices and kind of number are those of the field in its struct; see `read_field`.
    """

    help: str
    name: str = ""
    say: Callable[[Any], str] = str
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
        sets=not info.default if kind is bool else None,
        choices=tuple(one for one in choices if one != BY_TASK),
        whole=kind is int,
        metavar=field.metavar or ("N" if kind is int else ""),
    )


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


def write_share(share: float) -> str:
    """The share as `parse_share` reads it back."""
    percent = f"{share * 100:g}%"
    return percent if parse_share(percent) == share else repr(share)


def read_option_order(text: str) -> str | int:
    """Read an order of options: as_is, seeded or a number."""
    if text.isdecimal():
        return int(text)
    if text in ("as_is", "seeded"):
        return text
    raise UsageError(
        f"--option-order: {text!r} is neither as_is, seeded nor a number", remedy="write one of these, such as 1"
    )


def say_option_order(order: str | int) -> str:
    """The order of options in a label."""
    return f"options rotated by {order}" if isinstance(order, int) else f"options {order}"


def named(name: str) -> Callable[[Any], str]:
    """Says a value after a name."""
    return lambda value: f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def either(yes: str, no: str) -> Callable[[Any], str]:
    """Says one of two things."""
    return lambda value: yes if value else no
