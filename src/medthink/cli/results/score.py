"""`medthink score`: every score of a run, with its uncertainty."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from medthink.cli.flags import (
    PATH,
    RUN,
    cluster_flag,
    data_flag,
    json_flag,
    quiet_flag,
    read_cluster,
    slices_flag,
    split_flag,
)
from medthink.cli.output import console, draw, plain, print_json, progress
from medthink.core.files import short_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress, TaskID

    from medthink.audit.rivals import Guesses
    from medthink.scoring.radcliq import RadCliQOptions
    from medthink.scoring.scores import Scores
    from medthink.scoring.tables import RivalColumns


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@data_flag
@split_flag
@slices_flag
@click.option("--radcliq", is_flag=True, help="Also compute RadCliQ; needs the extra radcliq.")
@click.option("--radcliq-weights", "weights", type=PATH, metavar="FOLDER", help="The folder of RadCliQ's weights.")
@click.option("--radcliq-download", "download", is_flag=True, help="Download weights of RadCliQ that are missing.")
@click.option(
    "--radcliq-components", "components", type=PATH, metavar="FILE", help="RadCliQ's components, computed elsewhere."
)
@click.option(
    "--radgraph-annotations", "annotations", type=PATH, metavar="FILE", help="RadGraph's annotations, made elsewhere."
)
@cluster_flag("Compute RadCliQ")
@quiet_flag
@json_flag
def score(runs: tuple[Path, ...], data: Path | None, split: str, slices: bool, as_json: bool, **radcliq: Any) -> None:
    """Score RUNS (folders of `medthink run`, or .jsonl files in the submission format) against the references.

    A sweep or a folder of runs stands for its runs. No model is called, and the same run gives the same bytes. A run's
    scores are stored in its scores.json.

    \b
    Example: medthink score runs/retrieval --slices
    Example: medthink score predictions.jsonl --data bench/
    """
    from medthink.runs.manifest import find_runs
    from medthink.scoring.radcliq import RadCliQOptions
    from medthink.scoring.scores import to_plain

    is_wanted, cluster = radcliq.pop("radcliq"), radcliq.pop("cluster")
    options = RadCliQOptions(**radcliq)
    wanted = options if is_wanted or options != RadCliQOptions() else None
    spread = read_cluster(cluster, needs="--radcliq", is_wanted=wanted is not None)
    runs = find_runs(runs)
    with progress() as bar:
        wanted = wanted and replace(wanted, progress=_telling(bar), spread=spread)
        scored = [_score(path, data, split, wanted) for path in runs]
    if as_json:
        print_json([to_plain(one) for one in scored])
        return
    show_scores(scored, [data or _benchmark_of(path) for path in runs], slices=slices)


def show_scores(scored: "list[Scores]", benchmarks: Sequence[Path], *, slices: bool) -> None:
    """Print the tables of one or several scored runs, each next to the strongest rival on its benchmark."""
    out = console()
    beside, cautions = _rivals(scored, benchmarks)
    names = short_names([one.origin.name for one in scored])
    beside = {names[name]: one for name, one in beside.items()}
    scored = [replace(one, origin=replace(one.origin, name=names[one.origin.name])) for one in scored]
    for one in scored:
        out.print(plain(f"{one.origin.name}: {one.origin.model} · {one.origin.task} · {one.origin.condition_label}"))
    _show_headlines(scored, beside)
    for caution in cautions:
        out.print(plain(caution))
    _show_steps(scored)
    for one in scored:
        if slices:
            _show_slices(one)
        for note in one.notes:
            out.print(plain(f"{one.origin.name}: {note}"))


def _telling(bar: "Progress") -> "Callable[[str, int, int], None]":
    """A line of the progress bar for each component of RadCliQ, filled again for every run and step."""
    tasks: dict[str, TaskID] = {}

    def tell(component: str, total: int, done: int) -> None:
        if component not in tasks or bar.tasks[tasks[component]].finished:
            tasks[component] = bar.add_task(f"RadCliQ: {component}", total=total)
        bar.advance(tasks[component], done)

    return tell


def _score(path: Path, data: Path | None, split: str, radcliq: "RadCliQOptions | None") -> "Scores":
    from medthink.scoring.inputs import load_all
    from medthink.scoring.score import score as score_material
    from medthink.scoring.score import score_loaded

    material = load_all([path], data, split=split)[0]
    if material.manifest is None:
        return score_material(material, radcliq=radcliq)
    return score_loaded(path, material, radcliq=radcliq)


def _benchmark_of(run: Path) -> Path:
    from medthink.runs.run import Run

    return Run.open(run).benchmark_path()


def _rivals(scored: "list[Scores]", benchmarks: Sequence[Path]) -> "tuple[dict[str, RivalColumns], list[str]]":
    """Each lettered run's strongest rival and its gain, by name, and the limits of the gains."""
    from medthink.audit.rivals import rival_guesses
    from medthink.audit.runs import audit_run, gain_caution
    from medthink.cases.benchmark import Benchmark
    from medthink.scoring.scores import difference_text, rate_text
    from medthink.scoring.tables import RivalColumns

    @cache
    def guess(place: Path, split: str) -> "list[Guesses]":
        with progress() as bar:
            return rival_guesses(
                Benchmark.open(place),
                split,
                advance=lambda seen: bar.add_task(f"training a guesser on {seen}, once per benchmark", total=None),
            )

    beside: dict[str, RivalColumns] = {}
    cautions: dict[str, None] = {}
    for place, one in zip(benchmarks, scored, strict=True):
        if one.answers is None:
            continue
        audit = audit_run(one, guess(place, one.origin.split), scored)
        rival = f"{audit.strongest_rival}: {rate_text(audit.strongest_accuracy)}"
        beside[one.origin.name] = RivalColumns(rival, difference_text(audit.diagnostic_gain))
        if caution := gain_caution(audit):
            cautions[caution] = None
    return beside, [f"Gain: {caution}." for caution in cautions]


def _show_headlines(scored: "list[Scores]", beside: "dict[str, RivalColumns]") -> None:
    from medthink.scoring.tables import headline_table, repeats_line

    draw(headline_table(scored, beside))
    for one in scored:
        if line := repeats_line(one):
            console().print(f"{one.origin.name}: {line}")
    console().print()


def _show_steps(scored: "list[Scores]") -> None:
    """Every metric of one run; for several runs, the table metrics side by side."""
    from medthink.scoring.tables import step_table, steps_table

    if len(scored) > 1 and steps_table(scored).rows:
        draw(steps_table(scored))
        console().print()
    for step in scored[0].steps if len(scored) == 1 else ():
        draw(step_table(step), of=scored[0].origin.name)
        console().print()


def _show_slices(one: "Scores") -> None:
    from medthink.scoring.tables import slices_table

    draw(slices_table(one), of=one.origin.name)
    console().print()
