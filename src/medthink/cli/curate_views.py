"""How `medthink curate` shows what happened to the cases."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn

from medthink.cli.show import console, say, table
from medthink.core.numbers import as_percent
from medthink.curate.build import Watch
from medthink.curate.review import StageErrors
from medthink.curate.work import StageSummary


@contextmanager
def shown_stages() -> Iterator[Watch]:
    """A line for each stage that counts its cases while it works."""
    watched = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} cases"),
        console=watched, transient=True, disable=not watched.is_terminal,
    )  # fmt: skip
    with bar:

        def watch(stage: str):  # type: ignore[no-untyped-def]
            task = bar.add_task(stage, total=None)
            return lambda: bar.advance(task)

        yield watch


def show_stages(stages: Sequence[StageSummary]) -> None:
    """The counts of every stage, why cases left, and what was not covered."""
    rows = [
        (one.stage, one.counts.seen, one.counts.kept, one.counts.changed, one.counts.out, one.counts.undecided)
        for one in stages
    ]
    columns = ("stage", "cases", "unchanged", "changed", "out", "undecided")
    console().print(table("", columns, rows, right=range(1, 6)))
    for one in stages:
        for verdict in ("out", "undecided"):
            if reasons := one.counts.reasons.get(verdict):
                words = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
                say(f"{one.stage}, {verdict}: {words}")
        for name, value in one.report.items():
            say(f"{one.stage}: {name}: {value}")
    for one in stages:
        for missing in one.not_covered:
            say(f"Not covered by {one.stage}: {missing}")


def show_errors(errors: Sequence[StageErrors]) -> None:
    """The results of people's checks of automatic decisions."""
    for one in errors:
        say(
            f"{one.stage}: {one.wrong} of {one.checked} checked decisions were wrong;"
            f" the error rate is at most {as_percent(one.bound)} (95 %)"
        )
