"""`medthink data`: everything about a benchmark's files."""

import click

from medthink.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    modules={
        "pull": "medthink.cli.data_pull",
        "check": "medthink.cli.data_check",
        "stats": "medthink.cli.data_stats",
        "show": "medthink.cli.data_show",
        "export": "medthink.cli.data_export",
        "synth": "medthink.cli.data_synth",
    },
)
def data() -> None:
    """Pull, check, describe, show, export or make a benchmark.

    Example: medthink data check bench/ --images
    """
