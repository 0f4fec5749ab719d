"""`medthink data`: everything about a benchmark's files."""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from medthink.cli import output
from medthink.cli.command import LazyGroup
from medthink.cli.flags import (
    cluster_flag,
    count_flag,
    json_flag,
    out_folder,
    quiet_flag,
    read_cluster,
    revision_flag,
    seed_flag,
)
from medthink.cli.output import progress
from medthink.core.errors import Declined, UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from rich.progress import Progress

    from medthink.cases.check import CheckReport, DataProblem


@click.group(
    cls=LazyGroup,
    modules={
        "pull": "data.data:data_pull",
        "check": "data.data:data_check",
        "stats": "data.show:data_stats",
        "show": "data.show:data_show",
        "export": "data.export:data_export",
        "synth": "data.data:data_synth",
    },
)
def data() -> None:
    """Pull, check, describe, show, export or make a benchmark.

    Example: medthink data check bench/ --images
    """


_SHOWN_PER_CODE = 5


@click.command("check")
@click.argument("path", metavar="DATA", type=click.Path())
@click.option("--images", is_flag=True, help="Also check the image files' contents, on all cores.")
@cluster_flag("Check the image files' contents")
@quiet_flag
@json_flag
def data_check(path: str, images: bool, cluster: str | None, as_json: bool) -> None:
    """Find every broken invariant of a benchmark: errors and warnings, with the remedy for each.

    DATA is a benchmark folder or a .jsonl or .parquet file. Exit code 0: no errors, 1: errors, 2: unreadable.

    Example: medthink data check bench/ --images
    """
    from medthink.cases.benchmark import Benchmark
    from medthink.cases.check import check_benchmark

    spread = read_cluster(cluster, needs="--images", is_wanted=images)
    with output.staged_progress("Checking") as progress:
        report = check_benchmark(Benchmark.open(path), images=images, progress=progress, spread=spread)
    if as_json:
        output.print_json(_as_json(report))
    else:
        _print_report(report)
    if report.errors:
        raise Declined(f"errors in {path}: {len(report.errors):,}", remedy="docs/checks.md explains every code")


def _as_json(report: "CheckReport") -> dict[str, object]:
    import msgspec

    return {
        "cases": report.cases,
        "images": report.images,
        "pixels_checked": report.pixels_checked,
        "errors": len(report.errors),
        "warnings": len(report.warnings),
        "counts": report.counts,
        "problems": msgspec.to_builtins(report.problems),
    }


def _print_report(report: "CheckReport") -> None:
    from rich.text import Text

    console = output.console()
    looked = "opened" if report.pixels_checked else "not opened; --images checks their contents"
    console.print(Text(f"{report.cases:,} cases, {report.images:,} images ({looked})"))
    for name, problems in (("error", report.errors), ("warning", report.warnings)):
        console.print(Text(f"\n{count_of(len(problems), name)}", style="bold"))
        for code, group in groupby(problems, key=lambda problem: problem.code):
            _print_group(code, list(group))


def _print_group(code: str, problems: "list[DataProblem]") -> None:
    from rich.text import Text

    from medthink.cases.check import DEFECTS

    console = output.console()
    defect = DEFECTS[code]
    console.print()
    console.print(Text.assemble((f"{code} × {len(problems):,}", "bold"), f"  {defect.meaning} → {defect.remedy}"))
    rows = [
        (problem.split or "–", "–" if problem.case is None else problem.case, problem.field, problem.detail)
        for problem in problems[:_SHOWN_PER_CODE]
    ]
    console.print(output.print_table("", ("split", "case", "field", "what"), rows, right=[1]))
    if len(problems) > _SHOWN_PER_CODE:
        console.print(Text(f"  + {len(problems) - _SHOWN_PER_CODE:,} more (--json lists all)"))


@click.command()
@out_folder
@revision_flag.but(help="A branch, tag or commit of the benchmark on the hub.  [default: main]")
@quiet_flag
@json_flag
def data_pull(out: Path, revision: str | None, as_json: bool) -> None:
    """Fetch MedThinkVQA from the Hugging Face hub into FOLDER, and check it.

    An interrupted download continues where it stopped when the same command is run again.

    Example: medthink data pull -o medthinkvqa/
    """
    from medthink.cases.benchmark import Benchmark
    from medthink.cases.check import check_benchmark
    from medthink.cases.files.pull import LICENCE, REPOSITORY, REVISION, find_snapshot, pull_snapshot
    from medthink.core.files import claim_folder

    if out.exists():
        claim_folder(out, "test.jsonl", holds_more=True)
    click.echo(f"{REPOSITORY} is licensed {LICENCE}", err=as_json)
    snapshot = find_snapshot(revision or REVISION)
    with _download_bar() as bar:
        task = bar.add_task("Pulling", total=snapshot.size)
        pull_snapshot(snapshot, out, progress=lambda size: bar.advance(task, size))
    benchmark = Benchmark.open(out)
    if as_json:
        told = {"folder": str(out), "commit": snapshot.commit, "cases": len(benchmark)}
        output.print_json(told | _as_json(check_benchmark(benchmark, images=False)))
        return
    click.echo(f"commit {snapshot.commit}, {len(benchmark):,} cases → {out}")
    click.echo(f"read from {benchmark.sources}")
    # The release has known defects, so finding them is not a failure of the download.
    report = check_benchmark(benchmark, images=False)
    found = f"checked: {len(report.errors):,} errors, {len(report.warnings):,} warnings"
    click.echo(f"{found}; medthink data check {out} lists them")


def _download_bar() -> "Progress":
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=output.console(stderr=True),
        transient=True,
        disable=output.is_quiet(),
    )


@click.command("synth")
@out_folder
@count_flag("cases to make", type=click.IntRange(2), default=60, show_default=True)
@seed_flag
@click.option("--shortcut", is_flag=True, help="Plant an option-length leak and a history leak.")
@click.option("--defects", is_flag=True, help="Plant one of every defect that `medthink data check` finds.")
@click.option(
    "--raw", is_flag=True, help="Instead, make raw cases with planted faults, and a plan for `medthink curate build`."
)
@quiet_flag
@json_flag
def data_synth(out: Path, count: int, seed: int, raw: bool, as_json: bool, **planted: bool) -> None:
    """Make a benchmark of drawn phantoms that can only be solved from several images together.

    \b
    Example: medthink data synth -o bench/ --count 60 --seed 1
    Example: medthink data synth -o raw/ --raw --count 240
    """
    if raw:
        if any(planted.values()):
            raise UsageError("--raw already plants its own faults", remedy="leave out --shortcut and --defects")
        _make_raw(out, count, seed, as_json=as_json)
        return
    from medthink.phantoms.writer import write_benchmark

    with progress() as bar:
        task = bar.add_task("painting cases", total=count)
        counts = write_benchmark(
            out, cases=count, seed=seed, progress=lambda done: bar.update(task, completed=done), **planted
        )
    if as_json:
        output.print_json({"folder": str(out), "cases": count} | counts._asdict())
        return
    click.echo(f"{out}: {count} cases ({counts.train} train, {counts.test} test), {counts.images} images")


def _make_raw(out: Path, cases: int, seed: int, *, as_json: bool) -> None:
    from medthink.phantoms.raw_cases import write_raw

    with progress() as bar:
        task = bar.add_task("painting cases", total=cases)
        planted = write_raw(out, cases=cases, seed=seed, progress=lambda done: bar.update(task, completed=done))
    if as_json:
        output.print_json({"folder": str(out), "cases": cases, "faults": len(planted)})
        return
    click.echo(f"{out}: {cases} raw cases, faults in {len(planted)}; next: medthink curate build {out / 'plan.toml'}")
