"""A file for `vllm run-batch`: the waiting requests of a run, to be run by hand."""

from pathlib import Path

from medthink.bridges.targets import TargetOptions, TargetProgress, Written
from medthink.runs.manifest import read_manifest
from medthink.runs.manual import export_requests


def write_vllm(run: Path, out: Path, options: TargetOptions, progress: TargetProgress) -> Written:  # noqa: ARG001
    """Write the file, and say how to run it and import the output."""
    count = export_requests(run, out)
    name = read_manifest(run).model.partition("/")[2]
    return Written(
        lines=(
            f"{count:,} requests → {out}",
            f"vllm run-batch -i {out} -o output.jsonl --model {name}",
            f"medthink import output.jsonl --out {run}",
        )
    )
