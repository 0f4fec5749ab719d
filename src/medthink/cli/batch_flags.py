"""The flags about batches, and what is said about those that are left waiting: for runs and for judging."""

from collections.abc import Callable, Sequence
from pathlib import Path
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


def say_jobs(jobs: "Sequence[Batch]", folder: Path) -> None:
    """Point out that calls wait at the provider, or what is to be typed where a person has to run their files."""
    if not jobs:
        return
    from medthink.models.batches.files import OUTPUT

    calls, plural = sum(job.calls for job in jobs), "es" if len(jobs) > 1 else ""
    by_hand = [job for job in jobs if job.model.startswith("server/")]
    if not by_hand:
        say(f"{calls:,} calls wait in {len(jobs)} batch{plural}; the same command collects them", stderr=True)
        return
    say(f"{calls:,} calls wait to be run; when they are, the same command goes on:", stderr=True)
    for job in by_hand:
        place, name = folder / job.mark, job.model.partition("/")[2]
        say(f"  vllm run-batch -i {place}.jsonl -o {place}{OUTPUT} --model {name}", stderr=True)
