"""`medthink data export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from medthink.bridges.targets import TARGETS, Trainer, TrainingTask
from medthink.cli import output
from medthink.cli.flags import PATH, ListOption, embed_flag, format_flag, json_flag, out_any, quiet_flag, split_flag
from medthink.core.errors import Declined, UsageError

if TYPE_CHECKING:
    from medthink.bridges.targets import WrittenTarget

_THE_REST = "everything else is written; medthink data check lists these images"
_NAMED = 5


_WHOLE = {"jsonl": "the whole benchmark, as text", "parquet": "the whole benchmark, compressed"}
_TARGETS = {name: one.summary for name, one in TARGETS.items() if not one.is_of_run}


@click.command()
@click.argument("source", metavar="DATA", type=PATH)
@out_any
@format_flag(_WHOLE | _TARGETS)
@embed_flag
@click.option(
    "-t", "--task", type=click.Choice(get_args(TrainingTask)), default="answer", show_default=True,
    help="The task of the training examples.",
)  # fmt: skip
@click.option(
    "--trainer", type=click.Choice(get_args(Trainer)), default="neutral", show_default=True,
    help="The tool that will read the training examples.",
)  # fmt: skip
@split_flag
@click.option(
    "--held-out", cls=ListOption, type=PATH, metavar="DATA",
    help="A held-out benchmark: its cases are excluded from the training examples; may be repeated.",
)  # fmt: skip
@quiet_flag
@json_flag
def data_export(source: Path, out: Path, target: str, as_json: bool, **options: Any) -> None:
    """Write the benchmark DATA in another format without loss, or for another tool.

    Training examples come from the train split only; cases that nearly repeat a case of another split are refused.
    --split is for lmms-eval and VLMEvalKit. Exit code 0: all written, 1: written, but images are missing, damaged or
    outside the benchmark, 2: nothing written.

    \b
    Example: medthink data export bench/ --format parquet --embed-images -o bench-parquet/
    Example: medthink data export bench/ --format sft --task twi --trainer trl -o sft/
    Example: medthink data export bench/ --format vlmevalkit -o LMUData/MedThink.tsv
    """

    from medthink.bridges.targets import TargetOptions, write_target
    from medthink.cases.benchmark import Benchmark

    chosen = TargetOptions(**options)
    if target in _WHOLE:
        if chosen.embed_images and target != "parquet":
            raise UsageError(
                "only parquet can embed images", remedy="write --format parquet, or leave --embed-images out"
            )
        if chosen != TargetOptions(embed_images=chosen.embed_images):
            raise UsageError(
                f"a whole benchmark takes no flags but --embed-images: {target}", remedy="write --format sft, say"
            )
        _export_whole(source, out, target, chosen.embed_images, as_json=as_json)
        return
    with output.staged_progress("Reading") as progress:
        written = write_target(target, Benchmark.open(source), out, chosen, progress)
    show_written(written, out, as_json=as_json)


def show_written(written: "WrittenTarget", out: Path, *, as_json: bool) -> None:
    """Say what was written; Declined if something is lacking."""
    if as_json:
        output.print_json({"out": str(out)} | msgspec.to_builtins(written))
    for line in () if as_json else written.lines:
        output.print_line(line)
    for warning in written.warnings:
        output.print_line(f"medthink: {warning}", stderr=True)
    if written.lacking:
        raise Declined(written.lacking, remedy=_THE_REST)


def _export_whole(source: Path, out: Path, form: str, embed_images: bool, *, as_json: bool) -> None:
    from medthink.cases.benchmark import Benchmark
    from medthink.cases.files.export import export_benchmark
    from medthink.cases.images.stores import NoImages

    benchmark = Benchmark.open(source)
    with output.progress() as bar:
        task = bar.add_task("Exporting", total=len(benchmark))
        done = export_benchmark(
            benchmark,
            out,
            format="parquet" if form == "parquet" else "jsonl",
            embed_images=embed_images,
            progress=lambda: bar.advance(task),
        )
    if as_json:
        output.print_json({"out": str(out)} | msgspec.to_builtins(done))
    else:
        output.print_line(f"{done.cases:,} cases, {done.images:,} images → {out}")
    if isinstance(benchmark.images, NoImages):
        output.print_line(f"medthink: there are no images in {source}", stderr=True)
        return
    problems = [
        *_listed(f"images of {source} that could not be copied", done.absent),
        *_listed(f"images of {source} that cannot be decoded; copied unchanged", done.damaged),
    ]
    if problems:
        raise Declined("\n".join(problems), remedy=_THE_REST)


def _listed(head: str, images: dict[str, str]) -> list[str]:
    count = len(images)
    named = [f"  {path}: {problem}" for path, problem in list(images.items())[:_NAMED]]
    more = [f"  and {count - _NAMED:,} more"] if count > _NAMED else []
    return [f"{head}: {count:,}", *map(output.plain, named), *more] if images else []
