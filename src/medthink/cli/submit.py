"""`medthink submit`: from a run or a file of predictions to a valid submission."""

import click

from medthink.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    modules={
        "pack": "medthink.cli.submit_pack",
        "check": "medthink.cli.submit_check",
        "score": "medthink.cli.submit_score",
        "hub": "medthink.cli.submit_hub",
    },
)
def submit() -> None:
    """Pack a run as a submission, check and score one, or write its result for the hub.

    \b
    Example: medthink submit pack runs/qwen -o qwen.jsonl
    """
