"""The batch flags of runs and judging, and messages about batches still waiting."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.show import say
from medthink.core.errors import UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from medthink.runs.jobs import Batch

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
        say(
            f"{calls} waiting in {count_of(len(jobs), 'batch', 'batches')}; the same command collects them", stderr=True
        )
        return
    say(f"{calls} waiting to be run; run them like this, then repeat the same command:", stderr=True)
    for job in by_hand:
        place, name = folder / job.mark, job.model.partition("/")[2]
        say(f"  vllm run-batch -i {place}.jsonl -o {place}{OUTPUT} --model {name}", stderr=True)
