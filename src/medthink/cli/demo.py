"""`medthink demo`: every step on phantom data, with the same commands a person would type."""

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import click

from medthink.cli.flags import out_folder, verbose_flag
from medthink.cli.output import is_verbose
from medthink.core.files import claim_folder, write_atomic

CASES = 360
PLAN = "demo.toml"
SHARES = (0, 20, 40, 60, 80, 100)
_BASELINES = ("random", "longest", "guesser")


class _Step(NamedTuple):
    """One command, a short description, and a pattern of the output lines to show (None hides all)."""

    words: list[str]
    does: str
    matters: str = ""


@click.command()
@out_folder.but(required=False, default="demo", show_default=True)
@verbose_flag
def demo(out: Path) -> None:
    """Make a phantom benchmark, check it, run embedded baselines over it, score, audit and judge them, write a report.

    Needs no key and no network. Run it again to continue where it stopped; nothing is done twice.

    Example: medthink demo -o demo
    """
    # The plan comes first: by it, the folder is known as a demo's when the command is run again.
    claim_folder(out, PLAN)
    _write_plan(out / PLAN)
    for step in _steps(out):
        code = _take_aloud(step) if is_verbose() else _take(step)
        if code:
            # Its message is printed above, and its code says how it ended.
            raise click.exceptions.Exit(code)
    click.echo(f"Open {out / 'report.html'} in a browser: every score, figure and wrong answer of these runs.")


def _take_aloud(step: _Step) -> int:
    from medthink.cli.command import run_command

    click.echo(click.style(f"$ medthink {shlex.join(step.words)}", bold=True))
    code = run_command(step.words)
    click.echo()
    return code


def _take(step: _Step) -> int:
    """Run the command and show only the relevant output, or all of it if the command failed."""
    from medthink.cli.command import run_command

    click.echo(f"{step.does} …")
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = run_command(step.words)
    lines = printed.getvalue().splitlines()
    if code:
        click.echo("\n".join(lines), err=True)
        return code
    shown = [line.rstrip() for line in lines if step.matters and re.search(step.matters, line)]
    if shown:
        click.echo("\n".join(["", f"$ medthink {shlex.join(step.words)}", *shown, ""]))
    return 0


def _steps(out: Path) -> list[_Step]:
    """The commands in order; the benchmark is made once."""
    bench, runs = str(out / "bench"), out / "runs"
    shares = [str(runs / _share_name(share)) for share in SHARES]
    discussion = str(runs / "discussion")
    baselines = [str(runs / name) for name in _BASELINES]
    rules = ["--judge", "baseline/rules"]
    make = _Step(["data", "synth", "-o", bench, "--count", str(CASES), "--seed", "7"], f"Drawing {CASES} phantom cases")
    return [
        *([] if (out / "bench").exists() else [make]),
        _Step(["data", "check", bench, "--images"], "Checking them"),
        _Step(["data", "stats", bench, "--figure", str(out / "stats.svg")], "Describing them"),
        _Step(["sweep", str(out / PLAN)], "Running baselines, one of them on 0 to 100 % of the images", "."),
        _Step(["score", *baselines, *shares], "Scoring every step"),
        _Step(["compare", shares[-1], shares[0]], "Comparing all images with none"),
        _Step(
            ["audit", bench, shares[-1], shares[0]],
            "Testing whether it is diagnosis or guessing",
            "^Diagnostic gain",
        ),
        _Step(["judge", shares[-1], *rules, "--kinds", "steps,omissions,findings"], "Judging the steps"),
        _Step(["judge", discussion, *rules], "Judging the discussions"),
        _Step(
            ["exam", shares[-1], discussion, *rules, "--count", "5", "-o", str(out / "exam")],
            "Examining the judge",
        ),
        _Step(
            ["report", *baselines, *shares, discussion, "--audit", "-o", str(out / "report.html")],
            "Writing the report",
        ),
    ]


def _write_plan(file: Path) -> None:
    """The sweep of the demo: three baselines without images, and one on increasing shares of the images."""
    runs = [{"name": name, "model": f"baseline/{name}"} for name in _BASELINES]
    retrieval = {"model": "baseline/retrieval"}
    runs += [{"name": _share_name(share), **retrieval, "task": "twi", "image_share": f"{share}%"} for share in SHARES]
    runs.append({"name": "discussion", **retrieval, "task": "discussion"})
    blocks = ["\n".join(["[[runs]]", *(f'{key} = "{value}"' for key, value in run.items())]) for run in runs]
    head = 'data = "bench"\nout = "runs"\n'
    write_atomic(file, [("\n\n".join([head.rstrip(), *blocks]) + "\n").encode()])


def _share_name(share: int) -> str:
    return f"images-{share:03d}"
