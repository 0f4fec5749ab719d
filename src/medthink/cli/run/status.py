"""`medthink status`: progress of a run or a sweep, even while another process works on it."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.flags import RUN, data_flag, json_flag
from medthink.cli.output import console, describe_finished, describe_phase, print_json, print_table, progress_text
from medthink.core.errors import DataError

if TYPE_CHECKING:
    from medthink.runs.manifest import Manifest, Progress


@click.command()
@click.argument("folder", metavar="RUN|SWEEP", type=RUN)
@data_flag
@json_flag
def status(folder: Path, data: Path | None, as_json: bool) -> None:
    """Show how far a run or a sweep is, what it has cost, and why calls failed; it may still be in progress.

    \b
    Example: medthink status runs/qwen
    Example: medthink status sweeps/shares --json
    """
    from medthink.runs.sweep import SWEEP_FILE

    if (folder / SWEEP_FILE).is_file():
        _show_sweep(folder, as_json=as_json)
    elif not (folder / "run.json").is_file():
        problem = "this is neither a run nor a sweep: it has no run.json and no sweep.json"
        raise DataError(
            problem, file=folder, remedy="give the folder named by --out of medthink run, or by out in a plan"
        )
    else:
        _show_run(folder, data, as_json=as_json)


def _show_run(run: Path, data: Path | None, *, as_json: bool) -> None:
    from medthink.cases.benchmark import Benchmark
    from medthink.cli.run.display import about_run, read_jobs, say_failures, say_jobs_waiting, show_progress_of
    from medthink.runs.manifest import read_manifest
    from medthink.runs.run import Run, read_status
    from medthink.runs.selection import count_cases

    manifest = read_manifest(run)
    counts = read_status(run)
    if counts.is_running and not as_json:
        state = ("state", f"running: {describe_phase(counts)}")
        rows = [*about_run(manifest), state, *progress_text(counts), *say_jobs_waiting(run), *say_failures(run)]
        console().print(print_table(str(run), ("", ""), rows))
        return
    total = counts.predictions
    if not total:
        # The first session was killed before it counted its cases.
        benchmark = Benchmark.open(Run.open(run).benchmark_path(data))
        total = count_cases(benchmark, manifest.selection) * manifest.condition.samples
    progress = _read_progress(run, manifest, total, is_running=counts.is_running)
    if as_json:
        live = counts.snapshot() if counts.is_running else None
        jobs = [to_builtins(batch) for batch in read_jobs(run)]
        print_json(to_builtins(manifest) | {"progress": to_builtins(progress), "live": live, "batches": jobs})
    else:
        show_progress_of(run, manifest, progress)


def _read_progress(run: Path, manifest: "Manifest", total: int, *, is_running: bool) -> "Progress":
    """The run's progress as it was written, or by its ledger where that holds more."""
    from medthink.runs.ledger.queries import LedgerQueries
    from medthink.runs.run import is_settled, summarise

    if manifest.progress is not None and not is_running and is_settled(run, manifest):
        return manifest.progress
    with closing(LedgerQueries.open(run)) as records:
        return summarise(records, total, is_running=is_running)


def _show_sweep(folder: Path, *, as_json: bool) -> None:
    from medthink.runs.sweep import read_sweep, read_sweep_status

    counts = read_sweep_status(folder)
    if as_json:
        print_json(to_builtins(read_sweep(folder)) | {"live": counts.snapshot()})
        return
    state = f"running: {counts.phase}: {describe_finished(counts)}" if counts.is_running else "not running"
    rows = [
        ("state", state),
        ("runs", counts.detail or f"{len(read_sweep(folder).runs)} planned"),
        *progress_text(counts),
    ]
    console().print(print_table(str(folder), ("", ""), rows))
