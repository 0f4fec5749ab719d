"""A run's label: its model, and what distinguishes it from the other runs."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from medthink.core.markup import clean, one_line
from medthink.runs.manifest import Manifest
from medthink.workflow.condition import FIELDS
from medthink.workflow.tasks import default_condition, ends_in_answer

_LONGEST = 60
# Providers that indicate the kind of model.
_TELLING = ("baseline/", "replay/")
# A number with b or m that no letter or digit touches: "27b", "0.8B", "270m"; "a3b" is the active part, "8x7b" no sum.
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])", re.IGNORECASE)
_FEWEST_MILLIONS = 20


def model_size(model: str) -> float | None:
    """The number of parameters in billions that the name states, or None; all experts of a mixture together."""
    stated = [(float(number), unit.lower()) for number, unit in _SIZE.findall(model)]
    billions = [number for number, unit in stated if unit == "b" and number > 0]
    # A small number with m is a context length ("1m"), not a size.
    millions = [number / 1000 for number, unit in stated if unit == "m" and number >= _FEWEST_MILLIONS]
    return next(iter(billions + millions), None)


def model_family(model: str) -> str:
    """The model's name before its size: what siblings of other sizes share."""
    return _SIZE.split(model, maxsplit=1)[0].rstrip("-_ /.") or model


def model_shown(model: str) -> str:
    """The model as a page names it: only the name of a replayed run's folder, because its path is not part of a run."""
    return f"replay/{Path(model).name}" if model.startswith("replay/") else model


def run_names(paths: Sequence[Path]) -> list[str]:
    """The shortest unique ends of the paths."""
    whole = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, whole), default=1) + 1):
        names = ["/".join(parts[-length:]) for parts in whole]
        if len(set(names)) == len(set(whole)):
            break
    return names


def run_labels(manifests: Sequence[Manifest], names: Sequence[str]) -> list[str]:
    """A label for every run: the model, then task and condition where runs of that model differ in them."""
    models = short_models([manifest.model for manifest in manifests])
    labels = []
    for manifest in manifests:
        same = [other for other in manifests if other.model == manifest.model]
        labels.append(one_line(" · ".join([models[manifest.model], *_distinctions(manifest, same)]), _LONGEST))
    counts = Counter(labels)
    # Tables find a run by its label: the distinguishing part is never cut off.
    return [
        label if counts[label] == 1 else f"{label} ({clean(name)})" for label, name in zip(labels, names, strict=True)
    ]


def short_models(models: Sequence[str]) -> dict[str, str]:
    """Model names, without the provider where they stay unique."""
    bare = {model: model if model.startswith(_TELLING) else model.partition("/")[2] or model for model in models}
    counts = Counter(bare.values())
    return {model: name if counts[name] == 1 else model for model, name in bare.items()}


def _distinctions(manifest: Manifest, same: list[Manifest]) -> list[str]:
    words = [manifest.task] if _is_task_said(manifest, same) else []
    # Tasks have their own default conditions; only differences within the task are mentioned.
    within = [other.condition for other in same if other.task == manifest.task]
    for field in FIELDS:
        value = getattr(manifest.condition, field.name)
        differs = len({getattr(condition, field.name) for condition in within}) > 1
        # Defaults are not mentioned, except the share of images, which is a number on a scale.
        if differs and (field.name == "image_share" or value != getattr(default_condition(manifest.task), field.name)):
            words.append(field.say(value))
    return words


def _is_task_said(manifest: Manifest, same: list[Manifest]) -> bool:
    """Whether the label names the task: always for a discussion, for answer tasks only if there are several."""
    return not ends_in_answer(manifest.task) or len({other.task for other in same if ends_in_answer(other.task)}) > 1
