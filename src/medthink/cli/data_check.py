"""`medthink data check`: every broken invariant of a benchmark at once."""

from itertools import groupby

import click
import msgspec
from rich.text import Text

from medthink.cases.benchmark import Benchmark
from medthink.cases.check import DEFECTS, CheckReport, DataProblem, check_benchmark
from medthink.cli import show
from medthink.cli.cluster_flags import on_option, read_spread
from medthink.core.errors import Declined
from medthink.core.numbers import count_of

_SHOWN_PER_CODE = 5


@click.command("check")
@click.argument("path", type=click.Path())
@click.option("--images", is_flag=True, help="Also check the image files' contents, on all cores.")
@on_option("Look inside the image files")
@click.option("--json", "as_json", is_flag=True, help="Print every problem as JSON.")
def command(path: str, images: bool, on: str | None, as_json: bool) -> None:
    """Find every broken invariant of a benchmark: errors and warnings, with the remedy for each.

    PATH is a benchmark folder or a .jsonl or .parquet file. Exit code 0: no errors, 1: errors, 2: unreadable.

    Example: medthink data check bench/ --images
    """
    spread = read_spread(on, needs="--images", is_wanted=images)
    with show.staged_progress("Checking") as progress:
        report = check_benchmark(Benchmark.open(path), images=images, progress=progress, spread=spread)
    if as_json:
        show.print_json(_as_json(report))
    else:
        _print_report(report)
    if report.errors:
        raise Declined(f"errors in {path}: {len(report.errors):,}", remedy="docs/checks.md explains every code")


def _as_json(report: CheckReport) -> dict[str, object]:
    return {
        "cases": report.cases,
        "images": report.images,
        "pixels_checked": report.pixels_checked,
        "errors": len(report.errors),
        "warnings": len(report.warnings),
        "counts": report.counts,
        "problems": msgspec.to_builtins(report.problems),
    }


def _print_report(report: CheckReport) -> None:
    console = show.console()
    looked = "opened" if report.pixels_checked else "not opened; --images checks their contents"
    console.print(Text(f"{report.cases:,} cases, {report.images:,} images ({looked})"))
    for name, problems in (("error", report.errors), ("warning", report.warnings)):
        console.print(Text(f"\n{count_of(len(problems), name)}", style="bold"))
        for code, group in groupby(problems, key=lambda problem: problem.code):
            _print_group(code, list(group))


def _print_group(code: str, problems: list[DataProblem]) -> None:
    console = show.console()
    defect = DEFECTS[code]
    console.print()
    console.print(Text.assemble((f"{code} × {len(problems):,}", "bold"), f"  {defect.meaning} → {defect.remedy}"))
    rows = [
        (problem.split or "–", "–" if problem.case is None else problem.case, problem.field, problem.detail)
        for problem in problems[:_SHOWN_PER_CODE]
    ]
    console.print(show.table("", ("split", "case", "field", "what"), rows, right=[1]))
    if len(problems) > _SHOWN_PER_CODE:
        console.print(Text(f"  + {len(problems) - _SHOWN_PER_CODE:,} more (--json lists all)"))
