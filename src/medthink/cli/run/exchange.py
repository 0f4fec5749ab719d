"""`medthink import` and `medthink export`: what other programs make of a run, or are given of it."""

from pathlib import Path
from typing import Any

import click

from medthink.cli.flags import PATH, RUN, data_flag, embed_flag, format_flag, json_flag, out_any, quiet_flag
from medthink.cli.output import print_json, print_line, staged_progress
from medthink.core.errors import UsageError
from medthink.core.numbers import count_of


@click.command(name="export")
@click.argument("run", type=RUN)
@out_any
@format_flag({"inspect": "a log for Inspect View", "vllm-batch": "its waiting requests, for vllm run-batch"})
@embed_flag
@data_flag
@quiet_flag
@json_flag
def export_run(run: Path, out: Path, target: str, as_json: bool, **options: Any) -> None:
    """Write RUN for another program; medthink import reads its results.

    \b
    Example: medthink export runs/qwen --format inspect -o logs/qwen.eval
    Example: medthink export runs/qwen --format vllm-batch -o requests.jsonl
    """
    from medthink.bridges.targets import TargetOptions, write_run_target
    from medthink.cli.data.export import show_written

    with staged_progress("Reading") as progress:
        written = write_run_target(target, run, out, TargetOptions(**options), progress)
    show_written(written, out, as_json=as_json)


@click.command(name="import")
@click.argument("file", type=PATH)
@out_any
@data_flag
@json_flag
def import_replies(file: Path, out: Path, data: Path | None, as_json: bool) -> None:
    """Import another program's results: the output of vllm run-batch, or a log of Inspect AI (LOG.eval).

    --out is the run that asked, or a new run: a log of MedThink's own tasks becomes one, with every call. Any other log
    becomes a file of answers for medthink score.

    \b
    Example: medthink import output.jsonl -o runs/qwen
    Example: medthink import logs/2026-11-17_answer.eval -o runs/gpt
    """
    if file.suffix == ".eval":
        _take_in_log(file, out, data, as_json=as_json)
        return
    if data is not None:
        raise UsageError("--data only applies to an Inspect log", remedy="leave it out")
    from medthink.runs.batches.run import import_output

    taken = import_output(out, file)
    if as_json:
        print_json({"run": str(out), "answered": taken.answered, "waiting": taken.waiting})
        return
    left = f", {taken.waiting:,} still waiting" if taken.waiting else ""
    print_line(f"{taken.answered:,} requests answered{left}; to continue: medthink run {out / 'plan.toml'}")


def _take_in_log(file: Path, out: Path, data: Path | None, *, as_json: bool) -> None:
    from medthink.bridges.inspect.import_log import import_log

    taken = import_log(file, out, data)
    if taken.run is None:
        if as_json:
            print_json({"file": str(out), "answers": taken.answers})
            return
        print_line(f"{taken.answers:,} answers → {out}; next: medthink score {out} --data DATA")
        return
    made = taken.run.manifest.progress
    assert made is not None
    if as_json:
        print_json({"run": str(out), "predictions": made.states, "calls": made.calls})
        return
    states = ", ".join(f"{count:,} {state}" for state, count in made.states.items())
    predictions, calls = count_of(made.cases, "prediction"), count_of(sum(made.calls.values()), "call")
    print_line(f"{predictions} ({states}), {calls} → {out}; next: medthink score {out}")
