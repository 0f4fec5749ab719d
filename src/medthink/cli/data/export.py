"""`medthink data export`."""

from pathlib import Path
from typing import Any, Literal, get_args

import click

from medthink.bridges.targets import TARGETS, Trainer, TrainingTask
from medthink.cases.benchmark import Benchmark
from medthink.cases.images.stores import NoImages
from medthink.cli import output
from medthink.cli.command import SectionedCommand
from medthink.core.errors import Declined, UsageError

_THE_REST = "the rest is written; medthink data check lists every such image"
_NAMED = 5


@click.command(cls=SectionedCommand, sections={"--format": "As a benchmark", "--for": "For another tool", "-h": "Help"})
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--format", "format_", type=click.Choice(["jsonl", "parquet"]), help="Write the whole benchmark in this format."
)
@click.option("--embed-images", is_flag=True, help="Put the images into the parquet files, or into Inspect's log.")
@click.option(
    "--for",
    "target",
    type=click.Choice(list(TARGETS)),
    help=f"Instead: {'; '.join(f'{name}: {one.summary}' for name, one in TARGETS.items())}.",
)
@click.option(
    "--task",
    type=click.Choice(get_args(TrainingTask)),
    default="answer",
    show_default=True,
    help="The task of the training examples.",
)
@click.option(
    "--trainer",
    type=click.Choice(get_args(Trainer)),
    default="neutral",
    show_default=True,
    help="The tool that will read the training examples.",
)
@click.option("--split", default="test", show_default=True, help="The split to write for lmms-eval or VLMEvalKit.")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A held-out benchmark: its cases are excluded from the training examples; may be repeated.",
)
@click.option("--data", type=click.Path(path_type=Path), help="Of a run: its benchmark, if it has moved.")
def data_export(
    source: Path,
    out: Path,
    format_: Literal["jsonl", "parquet"] | None,
    target: str | None,
    **options: Any,
) -> None:
    """Write the benchmark (or run) IN as OUT: in another format without loss, or for another tool.

    Training examples come from the train split only; cases that nearly repeat a case of another split are refused.
    Exit code 0: all written, 1: written, but images are missing, damaged or outside the benchmark, 2: nothing written.

    \b
    Example: medthink data export bench/ bench-parquet/ --format parquet --embed-images
    Example: medthink data export bench/ sft/ --for sft --task twi --trainer trl
    Example: medthink data export runs/qwen requests.jsonl --for vllm-batch
    Example: medthink data export runs/qwen logs/qwen.eval --for inspect
    Example: medthink data export bench/ LMUData/MedThink.tsv --for vlmevalkit
    """

    from medthink.bridges.targets import TargetOptions, write_run_target, write_target

    if (format_ is None) == (target is None):
        raise UsageError("either --format or --for is needed, not both", remedy="choose one of them")
    chosen = TargetOptions(**options)
    if format_ is not None:
        if chosen.embed_images and format_ != "parquet":
            raise UsageError("only parquet can embed images", remedy="add --format parquet")
        if chosen != TargetOptions(embed_images=chosen.embed_images):
            raise UsageError("these flags need --for", remedy="add, for example, --for sft, or leave these flags out")
        _export_whole(source, out, format_, chosen.embed_images)
        return
    assert target is not None
    with output.staged_progress("Reading") as progress:
        if TARGETS[target].is_of_run:
            written = write_run_target(target, source, out, chosen, progress)
        else:
            written = write_target(target, Benchmark.open(source), out, chosen, progress)
    for line in written.lines:
        output.print_line(line)
    for warning in written.warnings:
        output.print_line(f"medthink: {warning}", stderr=True)
    if written.lacking:
        raise Declined(written.lacking, remedy=_THE_REST)


def _export_whole(source: Path, out: Path, format_: Literal["jsonl", "parquet"], embed_images: bool) -> None:
    from medthink.cases.files.export import export_benchmark

    benchmark = Benchmark.open(source)
    with output.progress() as bar:
        task = bar.add_task("Exporting", total=len(benchmark))
        done = export_benchmark(
            benchmark, out, format=format_, embed_images=embed_images, progress=lambda: bar.advance(task)
        )
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
