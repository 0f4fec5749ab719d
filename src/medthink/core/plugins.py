"""Models, metrics and tasks that other packages add by entry points.

group              what the entry point is
medthink.models    a function from a model's name to a `Model`; `NAME/MODEL` is its spec
medthink.metrics   a `Metric`
medthink.tasks     a `Task`
"""

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, Protocol, TypeVar

from medthink.core.errors import UsageError

PluginGroup = Literal["medthink.models", "medthink.metrics", "medthink.tasks"]


def plugin_names(group: PluginGroup) -> list[str]:
    """The names that installed packages add to a group; nothing is imported."""
    return sorted({entry.name for entry in entry_points(group=group)})


def load_plugin(group: PluginGroup, name: str) -> Any:
    """The object that the entry point names, imported now; None if no package adds that name."""
    found = list(entry_points(group=group, name=name))
    if not found:
        return None
    if len(found) > 1:
        packages = ", ".join(sorted(_package(entry) for entry in found))
        raise UsageError(f"several packages add {name} to {group}: {packages}", remedy="uninstall all but one")
    try:
        return found[0].load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{name}, which {_package(found[0])} adds to {group}, cannot be loaded: {error}",
            remedy="install that package again, or uninstall it",
        ) from None


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


Portion = TypeVar("Portion")
Made = TypeVar("Made")


class PortionRunner(Protocol):
    """Something that runs portions of work elsewhere; `work` and the portions must be picklable."""

    def __call__(self, work: Callable[[Portion], Made], portions: Iterable[Portion]) -> Iterator[Made]:
        """The result for each portion, in order."""
