"""What `medthink serve --demo` shows: phantoms, runs of embedded baselines, and a board with them on it."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import click

from medthink.core.errors import UsageError

CASES = 60
# Retrieval writes steps, to be read beside the reference; the others choose a letter.
_BASELINES = {"random": "answer", "longest": "answer", "retrieval": "twi"}


def fill_demo(folder: Path, cases: int = CASES) -> tuple[Path, Path]:
    """The store and the benchmark of the demo, made in a folder if missing; needs no key and no network."""
    bench, store = folder / "phantoms", folder / "board.sqlite"
    if not bench.exists():
        _take("Drawing phantoms", ["data", "synth", str(bench), "--cases", str(cases)])
    for name, task in _BASELINES.items():
        run = folder / "runs" / name
        if not run.exists():
            model = ["--model", f"baseline/{name}", "--task", task]
            _take(f"Running {name}", ["run", str(bench), *model, "--out", str(run)])
            team = ["--team", "Demo", "--allow-download", "--store", str(store)]
            _take(f"Adding {name} to the board", ["board", "add", str(run), "--data", str(bench), *team])
    read = folder / "runs" / "retrieval"
    if not (read / "units.jsonl").exists():
        kinds = ["--what", "steps,omissions", "--splitter", "sentences"]
        _take("Cutting texts into units for readers", ["judge", str(read), "--judge", "baseline/rules", *kinds])
    return store, bench


def _take(does: str, words: list[str]) -> None:
    """Run a command as typed, and hide its output."""
    from medthink.cli.door import enter

    click.echo(f"{does} …")
    with redirect_stdout(io.StringIO()):
        code = enter(words)
    if code:
        raise UsageError(f"the demo could not be made: medthink {' '.join(words)}", remedy="see the message above")
