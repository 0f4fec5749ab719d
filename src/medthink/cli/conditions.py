"""The flags that make a condition, for every command that takes one."""

from collections.abc import Callable
from typing import Any

import click
from msgspec.structs import replace

from medthink.cli.params import Real
from medthink.workflow.condition import FIELDS, Condition
from medthink.workflow.fields import ConditionField
from medthink.workflow.tasks import default_condition


def condition_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of a condition; it receives them as keyword arguments."""
    for field in reversed(FIELDS):
        command = _flag(field)(command)
    return command


def read_condition(task: str, flags: dict[str, Any]) -> Condition:
    """The task's default condition, changed by the flags given."""
    given = {field: flags[field.parameter] for field in FIELDS if flags[field.parameter] is not None}
    values = {field.name: _value(field, value) for field, value in given.items()}
    return replace(default_condition(task), **values)


def _flag(field: ConditionField) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if field.sets is not None:
        return click.option(field.option, is_flag=True, default=None, help=field.help)
    return click.option(field.option, type=_type(field), metavar=field.metavar or None, help=field.help)


def _type(field: ConditionField) -> click.ParamType[Any] | None:
    if field.choices:
        return click.Choice(field.choices)
    if field.low is None or field.read is not str:
        return None
    return click.IntRange(field.low) if field.whole else Real(field.low, field.high)


def _value(field: ConditionField, given: Any) -> Any:
    if field.sets is not None:
        return field.sets
    return field.read(given) if isinstance(given, str) else given
