"""The command that makes a run again, rebuilt from its manifest."""

import shlex
from pathlib import Path
from typing import Any

import msgspec

from medthink.runs.manifest import Manifest
from medthink.workflow.condition import Condition, parse_share
from medthink.workflow.tasks import default_condition

_SWITCHES = {
    "swap_images": "--swap-images",
    "show_history": "--hide-history",
    "show_options": "--hide-options",
    "single_call": "--single-call",
    "use_schema": "--no-schema",
}
_FLAG_NAMES = {"image_max_side": "--max-side", "image_max_bytes": "--max-bytes"}


def reproduction_command(manifest: Manifest, out: str) -> str:
    """`medthink run …` as it was; where data and servers lay is no part of a run, so places stand by their names."""
    words = ["medthink", "run", Path(manifest.benchmark).name or "DATA", "--model", manifest.model]
    words += ["--task", manifest.task, *_selection_words(manifest)]
    words += condition_words(manifest.task, manifest.condition)
    for number in range(1, len(manifest.base_urls) + 1):
        words += ["--base-url", f"URL-{number}"]
    return shlex.join([*words, "--out", out])


def condition_words(task: str, condition: Condition) -> list[str]:
    """The flags that turn the task's default condition into this one."""
    default = default_condition(task)
    words: list[str] = []
    for field in msgspec.structs.fields(Condition):
        value = getattr(condition, field.name)
        if value != getattr(default, field.name):
            words += _flag(field.name, value)
    return words


def _flag(field: str, value: Any) -> list[str]:
    if field in _SWITCHES:
        return [_SWITCHES[field]]
    name = _FLAG_NAMES.get(field, "--" + field.replace("_", "-"))
    if field == "image_share":
        percent = f"{value * 100:g}%"
        return [name, percent if parse_share(percent) == value else repr(value)]
    return [name, str(value)]


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
