"""What a session of a run is told."""

from pathlib import Path

import msgspec
from msgspec.structs import force_setattr

from medthink.runs.selection import DEFAULT_SPLIT, Selection
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import resolve_condition


class CallTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Where models are asked, at what prices, and the limits.

    With `batch`, calls use the provider's batch API; the session waits for them unless `wait` is off. `cancel_batches`
    ends the jobs of earlier sessions first. With `preflight`, server, model and key are checked before the first call.
    """

    base_urls: tuple[str, ...] = ()
    prices: Path | None = None
    max_usd: float | None = None
    max_calls: int | None = None
    preflight: bool = True
    batch: bool = False
    wait: bool = True
    cancel_batches: bool = False


class RunSpec(CallTerms, frozen=True, kw_only=True):
    """The parameters of a session; the command line's flags map one to one onto these fields.

    `out` may be missing only if nothing is sent. `plan` is the command as a file, kept in the run's folder.
    """

    benchmark: Path
    model: str
    out: Path | None = None
    task: str = "answer"
    condition: Condition = Condition()
    selection: Selection = Selection(split=DEFAULT_SPLIT)
    rehash: bool = False
    plan: str | None = None

    def __post_init__(self) -> None:
        # In this one place, for the command line and for Python.
        force_setattr(self, "condition", resolve_condition(self.task, self.condition))
