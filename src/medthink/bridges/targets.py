"""What `medthink data export` and `medthink export` can write for other tools.

Each is one module and one line in `TARGETS`. A target's module has `write(benchmark, out, options, progress)`; a run
target gets the run's folder instead of the benchmark. `takes` names the fields of `TargetOptions` it uses; the command
refuses the other flags.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.cases.benchmark import Benchmark

TrainingTask = Literal["answer", "twi", "discussion"]
Trainer = Literal["neutral", "trl", "verl", "ms-swift", "llama-factory"]
# Called at every step with the item type and the total number.
TargetProgress = Callable[[str, int], None]


class TargetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an export; each field is a flag of the command. `data` is where a run's benchmark is."""

    task: TrainingTask = "answer"
    trainer: Trainer = "neutral"
    held_out: tuple[Path, ...] = ()
    embed_images: bool = False
    split: str = "test"
    data: Path | None = None


class WrittenTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an export, as lines for the user, and warnings.

    `lacking` lists what could not be written, such as cases whose images cannot be read.
    """

    lines: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    lacking: str = ""


class WriteTarget(Protocol):
    """The function that writes a target."""

    def __call__(
        self, benchmark: "Benchmark", out: Path, options: TargetOptions, progress: TargetProgress
    ) -> WrittenTarget:
        """Write the benchmark into the new folder `out`."""


class WriteRunTarget(Protocol):
    """The function that writes a run target."""

    def __call__(self, run: Path, out: Path, options: TargetOptions, progress: TargetProgress) -> WrittenTarget:
        """Write the run as the new file or folder `out`."""


class ExportTarget(NamedTuple):
    """A target: the module of its `write`, its summary, its options, and whether it needs a run."""

    module: str
    name_of_write: str
    summary: str
    takes: frozenset[str] = frozenset()
    is_of_run: bool = False


_TRAINING = frozenset({"task", "trainer", "held_out"})
TARGETS = {
    "sft": ExportTarget("medthink.bridges.training", "write_sft", "supervised fine-tuning", _TRAINING),
    "rl": ExportTarget("medthink.bridges.training", "write_rl", "reinforcement learning", _TRAINING),
    "vllm-batch": ExportTarget(
        "medthink.bridges.targets", "write_vllm", "its waiting requests, for vllm run-batch", is_of_run=True
    ),
    "inspect": ExportTarget(
        "medthink.bridges.inspect.export_log",
        "export_log",
        "a log for Inspect View",
        frozenset({"embed_images", "data"}),
        is_of_run=True,
    ),
    "lmms-eval": ExportTarget("medthink.bridges.harnesses", "write_lmms", "a task for lmms-eval", frozenset({"split"})),
    "vlmevalkit": ExportTarget(
        "medthink.bridges.harnesses", "write_vlmevalkit", "a table for VLMEvalKit", frozenset({"split"})
    ),
}


def write_target(
    name: str, benchmark: "Benchmark", out: Path, options: TargetOptions, progress: TargetProgress
) -> WrittenTarget:
    """Write a benchmark for the target of this name, or UsageError for an option that does not apply to it."""
    write: WriteTarget = _find_write(name, options)
    return write(benchmark, out, options, progress)


def write_run_target(
    name: str, run: Path, out: Path, options: TargetOptions, progress: TargetProgress
) -> WrittenTarget:
    """The same for a run target."""
    write: WriteRunTarget = _find_write(name, options)
    return write(run, out, options, progress)


def _find_write(name: str, options: TargetOptions) -> Any:
    target = TARGETS[name]
    default = TargetOptions()
    for field in TargetOptions.__struct_fields__:
        if getattr(options, field) != getattr(default, field) and field not in target.takes:
            flag = field.replace("_", "-")
            raise UsageError(f"--{flag} does not apply to {name}", remedy=f"leave --{flag} out")
    return getattr(import_module(target.module), target.name_of_write)


def write_vllm(run: Path, out: Path, options: TargetOptions, progress: TargetProgress) -> WrittenTarget:  # noqa: ARG001
    """Write the file, and say how to run it and import the output."""

    from medthink.runs.batches.run import export_requests
    from medthink.runs.manifest import read_manifest

    count = export_requests(run, out)
    name = read_manifest(run).model.partition("/")[2]
    return WrittenTarget(
        lines=(
            f"{count:,} requests → {out}",
            f"vllm run-batch -i {out} -o output.jsonl --model {name}",
            f"medthink import output.jsonl -o {run}",
        )
    )
