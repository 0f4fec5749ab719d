"""`medthink demo`: the whole job on phantom data, by the very commands a person would type."""

import shlex
from pathlib import Path

import click

CASES = 360
SHARES = (0, 20, 40, 60, 80, 100)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Where to put it all.")
def demo(out: Path) -> None:
    """Make a phantom benchmark, check it, run embedded baselines over it, score, probe and judge them, write a report.

    Needs no key and no network. Run it again and it continues where it was; nothing is done twice.

    Example: medthink demo --out demo
    """
    from medthink.cli.door import enter

    for words in _steps(out):
        click.echo(click.style(f"$ medthink {shlex.join(words)}", bold=True))
        code = enter(words)
        click.echo()
        if code:
            # Its message stands above, and its code says what kind of end it was.
            raise click.exceptions.Exit(code)
    click.echo(f"Open {out / 'report.html'} in a browser: every score, figure and wrong answer of these runs.")


def _steps(out: Path) -> list[list[str]]:
    """The commands in order; the benchmark is made once."""
    bench, runs = str(out / "bench"), out / "runs"
    make = [] if (out / "bench").exists() else [["data", "synth", bench, "--cases", str(CASES), "--seed", "7"]]
    shares = [str(runs / f"images-{share:03d}") for share in SHARES]
    discussion = str(runs / "discussion")
    baselines = [str(runs / name) for name in ("random", "longest", "guesser")]
    return [
        *make,
        ["data", "check", bench, "--images"],
        ["data", "stats", bench, "--figure", str(out / "stats.svg")],
        *(_run(bench, f"baseline/{Path(path).name}", path) for path in baselines),
        *(
            _run(bench, "baseline/retrieval", path, "--task", "twi", "--image-share", f"{share}%")
            for share, path in zip(SHARES, shares, strict=True)
        ),
        _run(bench, "baseline/retrieval", discussion, "--task", "discussion"),
        ["score", *baselines, *shares],
        ["compare", shares[-1], shares[0]],
        ["probe", bench, shares[-1], shares[0]],
        ["judge", shares[-1], "--judge", "baseline/rules"],
        ["judge", discussion, "--judge", "baseline/rules"],
        ["report", *baselines, *shares, discussion, "--probe", "-o", str(out / "report.html")],
    ]


def _run(bench: str, model: str, out: str, *more: str) -> list[str]:
    return ["run", bench, "--model", model, "--out", out, *more]
