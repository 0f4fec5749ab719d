"""The tasks that `inspect eval medthink/NAME` finds through this package's entry point; imports are in the task."""

from typing import TYPE_CHECKING, Any

from inspect_ai import task

if TYPE_CHECKING:
    from inspect_ai import Task


@task  # type: ignore[untyped-decorator]
def answer(data: str, split: str = "test", condition: dict[str, Any] | None = None) -> "Task":
    """Show everything at once and ask for the diagnosis."""
    return _build("answer", data, split, condition)


@task  # type: ignore[untyped-decorator]
def twi(data: str, split: str = "test", condition: dict[str, Any] | None = None) -> "Task":
    """Think with images: the findings of each image, a summary, the diagnosis."""
    return _build("twi", data, split, condition)


@task  # type: ignore[untyped-decorator]
def discussion(data: str, split: str = "test", condition: dict[str, Any] | None = None) -> "Task":
    """Write a teaching discussion of the case in six sections."""
    return _build("discussion", data, split, condition)


def _build(name: str, data: str, split: str, condition: dict[str, Any] | None) -> "Task":
    from inspect_ai._util.error import PrerequisiteError

    from medthink.bridges.inspect.tasks import build_task
    from medthink.core.errors import MedThinkError

    try:
        return build_task(name, data, split, condition or {})
    except MedThinkError as error:
        raise PrerequisiteError(f"medthink: {error.problem}\n  → {error.remedy}") from None
