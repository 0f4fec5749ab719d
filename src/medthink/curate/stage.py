"""The interface of a stage: settings, a survey of all cases if it needs one, and a decision on each case."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec

from medthink.core.errors import MedThinkError, UsageError
from medthink.curate.ask import StageModel, prompts_version
from medthink.curate.decision import StageResult
from medthink.curate.draft import Draft, read_drafts
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import ModelSettings, StageSettings, stage_entry
from medthink.curate.sources.release import NO_RELEASE, Release

if TYPE_CHECKING:
    from medthink.runs.manifest import RunSpec

Drafts = Callable[[], Iterator[Draft]]


class StageContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a stage: the work folder, the folder that its plan's paths are relative to, the seed, the input.

    `folder` holds the case files and their `images/`. `source` is the file of drafts that the stage reads, None for
    the first stage. `release` has the published cases that the build follows.
    """

    work: Path
    folder: Path
    plan_folder: Path
    seed: int
    source: Path | None
    release: Release = NO_RELEASE

    def path(self, written: str) -> Path:
        """A path of the plan, relative to the plan's folder."""
        return self.plan_folder / written


Settings = TypeVar("Settings", bound=StageSettings)


class Stage(Generic[Settings]):
    """The base of every stage; a stage overrides `decide`, and other methods if needed."""

    name: ClassVar[str]
    # Raised when its rules would decide differently: cases decided by an older version are decided again.
    version: ClassVar[int] = 2
    # Whether it keeps what is published of a case, when the build follows a release.
    follows_release: ClassVar[bool] = False
    # The parts of a draft that its questions depend on, by the names of `look_at`; all if none is named.
    looks_at: ClassVar[tuple[str, ...]] = ()
    # False if a stage creates the cases: the log would then hold every text twice.
    logs_changes: ClassVar[bool] = True

    def __init__(self, settings: Settings, context: StageContext) -> None:
        self.settings = settings
        self.context = context
        # What ended the calls made by `survey`, such as a budget; the build stops after this stage.
        self.stopped_by: MedThinkError | None = None

    def read(self) -> Iterator[Draft]:
        """The drafts to decide on, from the start each time it is called."""
        if self.context.source is None:
            raise UsageError(f"{self.name} needs cases to work on", remedy="name the file that another stage wrote")
        return read_drafts(self.context.source)

    def survey(self, drafts: Drafts) -> None:
        """Read all cases once, before the first decision, storing little of each."""

    def probes(self) -> "Iterator[RunSpec]":
        """The runs of models that `survey` makes, if any."""
        return iter(())

    def begin_pass(self) -> None:
        """Reset the state of an earlier pass over the cases: with batches there are several."""

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """Keep, change or drop the draft; `ask` is None if the settings name no model.

        A question for a person goes through `rulings`, which continues where it was answered. A question that was not,
        and a call without an answer (`Unanswered`), raise what must not be caught: the case is then undecided.
        """
        raise NotImplementedError

    def is_written(self) -> bool:
        """Whether what the stage wrote besides its cases and its log is still there."""
        return True

    def finish(self, drafts: Drafts) -> None:
        """Process the cases kept once all are decided, for example to write them out."""

    def not_covered(self) -> tuple[str, ...]:
        """The limits of this stage with these settings, worded for the data card."""
        return ()

    def report(self) -> dict[str, Any]:
        """Figures of the stage for its summary: plain data."""
        return {}

    def inputs(self) -> Any:
        """Further inputs of the outcome, as plain data, such as the digest of a file the settings name."""
        return None

    def prompts(self) -> Any:
        """The version of the prompts it sends, as plain data; None if it asks no model."""
        is_asking = isinstance(self.settings, ModelSettings) and self.settings.model
        return prompts_version() if is_asking else None


def stage_type(name: str) -> type[Stage[Any]]:
    """The class of a stage, which its module names STAGE; imported on demand."""
    stage_entry(name)
    found: type[Stage[Any]] = import_module(f"medthink.curate.stages.{name}").STAGE
    return found
