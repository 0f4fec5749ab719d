"""What `medthink data export --for` can write: one module and one line in `TARGETS` each.

A target's module has `write(benchmark, out, options, progress)`; one that is made of a run is given its folder in the
place of the benchmark. `takes` names the fields of `TargetOptions` that mean something to it; the command refuses the
flags of the others.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.core.errors import UsageError

TrainingTask = Literal["answer", "twi", "discussion"]
Trainer = Literal["neutral", "trl", "verl", "ms-swift", "llama-factory"]
# Told at every step what is looked at and how many of them there are in all.
TargetProgress = Callable[[str, int], None]


class TargetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a person can choose; each field is a flag of the command."""

    task: TrainingTask = "answer"
    trainer: Trainer = "neutral"
    against: tuple[Path, ...] = ()


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, in lines for a person, and what they should be warned of."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class WriteTarget(Protocol):
    """How a target is written."""

    def __call__(self, benchmark: Benchmark, out: Path, options: TargetOptions, progress: TargetProgress) -> Written:
        """Write the benchmark into the new folder `out`."""


class WriteRunTarget(Protocol):
    """How a target that is made of a run is written."""

    def __call__(self, run: Path, out: Path, options: TargetOptions, progress: TargetProgress) -> Written:
        """Write the run as the new file or folder `out`."""


class ExportTarget(NamedTuple):
    """Where a target's `write` is, what it is for, the options it takes, and whether it is made of a run."""

    module: str
    name_of_write: str
    summary: str
    takes: frozenset[str] = frozenset()
    is_of_run: bool = False


_TRAINING = frozenset({"task", "trainer", "against"})
TARGETS = {
    "sft": ExportTarget("medthink.bridges.training", "write_sft", "supervised fine-tuning", _TRAINING),
    "rl": ExportTarget("medthink.bridges.training", "write_rl", "reinforcement learning", _TRAINING),
    "vllm-batch": ExportTarget(
        "medthink.bridges.vllm", "write_vllm", "of a run, the requests that wait, for vllm run-batch", is_of_run=True
    ),
}


def write_target(
    name: str, benchmark: Benchmark, out: Path, options: TargetOptions, progress: TargetProgress
) -> Written:
    """Write a benchmark for the target of this name, or UsageError for an option that the target does not take."""
    write: WriteTarget = _find_write(name, options)
    return write(benchmark, out, options, progress)


def write_run_target(name: str, run: Path, out: Path, options: TargetOptions, progress: TargetProgress) -> Written:
    """The same for a target that is made of a run."""
    write: WriteRunTarget = _find_write(name, options)
    return write(run, out, options, progress)


def _find_write(name: str, options: TargetOptions) -> Any:
    target = TARGETS[name]
    default = TargetOptions()
    for field in TargetOptions.__struct_fields__:
        if getattr(options, field) != getattr(default, field) and field not in target.takes:
            flag = field.replace("_", "-")
            raise UsageError(f"--{flag} means nothing for {name}", remedy=f"leave --{flag} out")
    return getattr(import_module(target.module), target.name_of_write)
