"""The command that reproduces a run, rebuilt from its manifest."""

import shlex
from pathlib import Path

from medthink.runs.manifest import Manifest
from medthink.workflow.condition import FIELDS, Condition
from medthink.workflow.tasks import default_condition


def reproduction_command(manifest: Manifest, out: str) -> str:
    """The original `medthink run …`; paths and addresses are not part of a run, so only their names are given."""
    words = ["medthink", "run", Path(manifest.benchmark).name or "DATA", "--model", manifest.model]
    words += ["--task", manifest.task, *_selection_words(manifest)]
    words += condition_words(manifest.task, manifest.condition)
    for number in range(1, len(manifest.base_urls) + 1):
        words += ["--base-url", f"URL-{number}"]
    return shlex.join([*words, "--out", out])


def condition_words(task: str, condition: Condition) -> list[str]:
    """The flags that turn the task's default condition into this one."""
    default = default_condition(task)
    values = {field: getattr(condition, field.name) for field in FIELDS}
    differing = (field.words(value) for field, value in values.items() if value != getattr(default, field.name))
    return [word for words in differing for word in words]


def _selection_words(manifest: Manifest) -> list[str]:
    selection = manifest.selection
    words = [] if selection.split == "test" else ["--split", selection.split]
    if selection.limit is not None:
        words += ["--limit", str(selection.limit)]
    if selection.cases is not None:
        words += ["--cases", ",".join(map(str, selection.cases))]
    if selection.shard is not None:
        words += ["--shard", str(selection.shard)]
    return words
