"""Kinds of option values that click does not know."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from medthink.cli.output import print_line
from medthink.core.errors import UsageError
from medthink.core.numbers import count_of
from medthink.workflow.condition import FIELDS, Condition, ConditionField
from medthink.workflow.tasks import default_condition

if TYPE_CHECKING:
    from medthink.core.plugins import PortionRunner
    from medthink.runs.batches.jobs import Batch
    from medthink.store.engine import Store


class FiniteFloat(click.FloatRange):
    """A finite number within a range; NaN and infinity are refused."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


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
    return click.IntRange(field.low) if field.whole else FiniteFloat(field.low, field.high)


def _value(field: ConditionField, given: Any) -> Any:
    if field.sets is not None:
        return field.sets
    return field.read(given) if isinstance(given, str) else given


batch_option: Callable[..., Any] = click.option(
    "--batch", is_flag=True, help="Use the provider's batch API: half the price, up to a day per step."
)
no_wait_option: Callable[..., Any] = click.option(
    "--no-wait", is_flag=True, help="With --batch: exit once everything is sent; the same command collects it."
)


def read_batch(flags: dict[str, Any]) -> dict[str, bool]:
    """Whether batches are used and waited for; removes the flags."""
    batch, wait = flags.pop("batch"), not flags.pop("no_wait")
    if not batch and not wait:
        raise UsageError("--no-wait only applies to batches", remedy="add --batch, or leave out --no-wait")
    return {"batch": batch, "wait": wait}


def say_jobs(jobs: "Sequence[Batch]", folder: Path) -> None:
    """Say that calls are waiting at the provider, or which command runs their files by hand."""
    if not jobs:
        return
    from medthink.models.batches.files import OUTPUT

    calls = count_of(sum(job.calls for job in jobs), "call")
    by_hand = [job for job in jobs if job.model.startswith("server/")]
    if not by_hand:
        print_line(
            f"{calls} waiting in {count_of(len(jobs), 'batch', 'batches')}; the same command collects them", stderr=True
        )
        return
    print_line(f"{calls} waiting to be run; run them as follows, then run the same command again:", stderr=True)
    for job in by_hand:
        place, name = folder / job.mark, job.model.partition("/")[2]
        print_line(f"  vllm run-batch -i {place}.jsonl -o {place}{OUTPUT} --model {name}", stderr=True)


def on_option(what: str) -> Callable[[Any], Any]:
    """The flag --on, with what is done there."""
    return click.option(
        "--on",
        type=click.Choice(["ray"]),
        help=f"{what} on a Ray cluster that is already running; needs the extra [ray].",
    )


def read_cluster(on: str | None, *, needs: str, is_wanted: bool) -> "PortionRunner | None":
    """Where the heavy part is done: None means here. UsageError where there is no heavy part, without `needs`."""
    if on is None:
        return None
    if not is_wanted:
        raise UsageError("--on is for heavy work, and there is none", remedy=f"add {needs}, or leave out --on")
    from medthink.bridges.ray_cluster import map_on_ray

    return map_on_ray


DEFAULT_STORE = "board.sqlite"

Decorated = Callable[..., Any]


def store_flag(command: Decorated) -> Decorated:
    """`--store`: a file, or the URL of a PostgreSQL database."""
    return click.option(
        "--store",
        default=DEFAULT_STORE,
        show_default=True,
        envvar="MEDTHINK_STORE",
        metavar="FILE or URL",
        help="A SQLite file, or postgresql://… (or set MEDTHINK_STORE).",
    )(command)


@contextmanager
def open_store(place: str, *, creates: bool = False) -> "Iterator[Store]":
    """The store, closed afterwards; only commands that put something into one may make it."""
    try:
        from medthink.store.engine import Store, store_url
    except ModuleNotFoundError as error:
        raise UsageError(f"a board needs the package {error.name}", remedy="pip install 'medthink[board]'") from None
    with closing(Store(store_url(place), must_exist=not creates)) as store:
        yield store
