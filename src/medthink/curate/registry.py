"""The stages, in the order of a build; a module is imported when its stage is asked for."""

from importlib import import_module
from typing import Any, NamedTuple

import msgspec

from medthink.core.errors import UsageError
from medthink.core.suggest import suggest
from medthink.curate.stage import Stage, StageSettings


class StageEntry(NamedTuple):
    """Where a stage lives (its module holds the class as `STAGE`), and what it is for."""

    module: str
    summary: str


_STAGES = "medthink.curate.stages"
STAGES = {
    "ingest": StageEntry(f"{_STAGES}.ingest", "Read raw cases from a table and image files"),
    "aliases": StageEntry(f"{_STAGES}.aliases", "Gather the other names of each diagnosis"),
    "options": StageEntry(f"{_STAGES}.options", "Find the right diagnosis and its distractors in each list"),
    "leaks": StageEntry(f"{_STAGES}.leaks", "Leave out cases whose history reveals the diagnosis"),
    "balance": StageEntry(f"{_STAGES}.balance", "Choose five options; even out lengths and letters"),
    "textonly": StageEntry(f"{_STAGES}.textonly", "Leave out cases that can be solved without the images"),
    "icd": StageEntry(f"{_STAGES}.icd", "Label each case with its ICD-10 chapter, block and category"),
    "timeline": StageEntry(f"{_STAGES}.timeline", "Find the cases that were imaged at more than one time"),
    "modality": StageEntry(f"{_STAGES}.modality", "Label each image: CT, MRI, X-ray, ultrasound and so on"),
    "discussion": StageEntry(f"{_STAGES}.discussion", "Remove passages about dropped diagnoses from the discussions"),
    "split": StageEntry(f"{_STAGES}.split", "Split the cases, near-duplicates together, and assign the letters"),
    "export": StageEntry(f"{_STAGES}.export", "Write the benchmark with its data card"),
}


def stage_type(name: str) -> type[Stage[Any]]:
    """The class of a stage, imported on demand."""
    if name not in STAGES:
        raise UsageError(f"unknown stage {name!r}", remedy=suggest(name, STAGES, f"known: {', '.join(STAGES)}"))
    found: type[Stage[Any]] = import_module(STAGES[name].module).STAGE
    return found


def read_settings(name: str, fields: dict[str, Any]) -> StageSettings:
    """The settings of a stage from plain fields, or UsageError naming the one that is wrong."""
    kind = stage_type(name).settings_type
    known = kind.__struct_fields__
    plain = {key.replace("-", "_"): value for key, value in fields.items()}
    if strange := [key for key in plain if key not in known]:
        remedy = suggest(strange[0], known, f"settings of {name}: {', '.join(known) or 'none'}")
        raise UsageError(f"{name}: unknown setting {strange[0]!r}", remedy=remedy)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}", remedy=f"medthink curate {name} --help says what it takes") from None
