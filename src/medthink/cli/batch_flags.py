"""The flags about batches, and what is said about those that are left waiting: for runs and for judging."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.show import say
from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.runs.jobs import Batch

batch_option: Callable[..., Any] = click.option(
    "--batch", is_flag=True, help="Ask by the provider's batches: half the price, within a day per step."
)
no_wait_option: Callable[..., Any] = click.option(
    "--no-wait", is_flag=True, help="With --batch: leave when all is sent; the same command collects it."
)


def read_batch(flags: dict[str, Any]) -> dict[str, bool]:
    """Whether batches are used and waited for, taken out of the flags."""
    batch, wait = flags.pop("batch"), not flags.pop("no_wait")
    if not batch and not wait:
        raise UsageError("--no-wait is about batches", remedy="add --batch, or leave it out")
    return {"batch": batch, "wait": wait}


def say_jobs(jobs: "Sequence[Batch]") -> None:
    """Point out that calls wait at the provider."""
    if jobs:
        calls, plural = sum(job.calls for job in jobs), "es" if len(jobs) > 1 else ""
        say(
            f"{calls:,} calls wait in {len(jobs)} batch{plural}; the same command with --batch collects them",
            stderr=True,
        )
