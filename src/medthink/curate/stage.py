"""The interface of a stage: settings, a survey of all cases if it needs one, and a decision on each case."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from medthink.core.errors import MedThinkError, UsageError, suggest
from medthink.curate.ask import StageModel, prompts_version
from medthink.curate.decision import StageResult
from medthink.curate.draft import Draft, read_drafts
from medthink.curate.rulings import CaseRulings
from medthink.curate.sources.release import NO_RELEASE, Release
from medthink.models.request import EXAMPLE_SCHEMA, Effort, Request, TextPart
from medthink.runs.manifest import CallTerms
from medthink.workflow.forms import RULES

if TYPE_CHECKING:
    from medthink.models.transport import Transport

Drafts = Callable[[], Iterator[Draft]]
NotNegative = Annotated[float, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
WholeNumber = Annotated[int, Meta(ge=0)]


class StageSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stage's settings in a plan; the command's flags are the same fields, with the descriptions as help."""


class CallSettings(StageSettings, frozen=True, kw_only=True):
    """Where models are asked, how fast, at what price and up to which limit: what `medthink run` takes too."""

    base_url: Annotated[tuple[str, ...], Meta(description="Address of the model's server; may be repeated.")] = ()
    concurrency: Annotated[int, Meta(description="Concurrent calls.", ge=1)] = 16
    rpm: Annotated[AtLeastOne | None, Meta(description="Requests per minute.")] = None
    tpm: Annotated[AtLeastOne | None, Meta(description="Tokens per minute.")] = None
    timeout: Annotated[float, Meta(description="Seconds to wait for one reply.", ge=1)] = 600.0
    max_wait: Annotated[float, Meta(description="Seconds to wait for a server that is down.", ge=0)] = 600.0
    batch: Annotated[bool, Meta(description="Use the provider's batch API.")] = False
    wait: Annotated[bool, Meta(description="Wait for the batches.")] = True
    cancel_batches: Annotated[bool, Meta(description="First cancel the batches of earlier sessions.")] = False
    preflight: Annotated[bool, Meta(description="Check server, model and key before the first call.")] = True
    max_usd: Annotated[NotNegative | None, Meta(description="Stop before the cost exceeds this.")] = None
    max_calls: Annotated[WholeNumber | None, Meta(description="Stop after this many calls.")] = None
    prices: Annotated[str, Meta(description="Your own prices (TOML).")] = ""

    def terms(self, folder: Path) -> CallTerms:
        """The terms of its calls; the file of prices is named from this folder."""
        return CallTerms(
            base_urls=self.base_url,
            prices=folder / self.prices if self.prices else None,
            max_usd=self.max_usd,
            max_calls=self.max_calls,
            preflight=self.preflight,
            batch=self.batch,
            wait=self.wait,
            cancel_batches=self.cancel_batches,
        )

    def transport(self) -> "Transport":
        """The transport of its calls."""
        from medthink.models.limits import Backoff, RateLimits
        from medthink.models.transport import Transport

        pace = RateLimits(
            concurrency=self.concurrency, requests_per_minute=self.rpm, tokens_per_minute=self.tpm
        )  # fmt: skip
        return Transport(pace=pace, backoff=Backoff(patience_s=self.max_wait), timeout_s=self.timeout)


class ModelSettings(CallSettings, frozen=True, kw_only=True):
    """The settings of a stage that can ask a model."""

    model: Annotated[
        str, Meta(description="The model to ask, as in medthink run; without one, only rules are used.")
    ] = ""
    effort: Annotated[Effort | None, Meta(description="Reasoning effort of the model.")] = None
    temperature: Annotated[NotNegative | None, Meta(description="Sampling temperature.")] = None
    max_tokens: Annotated[AtLeastOne | None, Meta(description="Maximum tokens per reply.")] = None

    @property
    def has_model(self) -> bool:
        """Whether a real model is asked; `baseline/rules` only repeats the stage's own rules."""
        return self.model not in ("", RULES)

    def example_request(self) -> Request:
        """An almost empty request with these settings, to see whether the provider accepts them."""
        return Request(
            parts=(TextPart("?"),),
            schema=EXAMPLE_SCHEMA,
            is_json_checked=False,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            effort=self.effort,
        )


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
    settings_type: ClassVar[type[StageSettings]] = StageSettings
    # False for the stage that reads the source itself, and more flags for the example in its help.
    takes_cases: ClassVar[bool] = True
    example: ClassVar[str] = ""
    # Whether it keeps what is published of a case, when the build follows a release.
    follows_release: ClassVar[bool] = False
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


class StageEntry(NamedTuple):
    """The module of a stage (with the class as `STAGE`), and its summary."""

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


def _spell(key: str) -> str:
    """A setting's name as its struct spells it."""
    return key.replace("-", "_").replace("license", "licence")


def read_stage_settings(name: str, fields: dict[str, Any]) -> StageSettings:
    """The settings of a stage from plain fields, or UsageError naming the one that is wrong."""
    kind = stage_type(name).settings_type
    known = kind.__struct_fields__
    plain = {_spell(key): value for key, value in fields.items()}
    if strange := [key for key in plain if key not in known]:
        remedy = suggest(strange[0], known, f"settings of {name}: {', '.join(known) or 'none'}")
        raise UsageError(f"{name}: unknown setting {strange[0]!r}", remedy=remedy)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}", remedy=f"medthink curate {name} --help lists its settings") from None
