"""The settings of every stage, and the table of stages: what help, plans and flags need, without a stage's code."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from medthink.core.errors import UsageError, suggest
from medthink.models.request import EXAMPLE_SCHEMA, Effort, Request, TextPart

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.manifest import CallTerms

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
    service_tier: Annotated[str | None, Meta(description="The provider's own service tier.")] = None
    batch: Annotated[bool, Meta(description="Use the provider's batch API.")] = False
    wait: Annotated[bool, Meta(description="Wait for the batches.")] = True
    cancel_batches: Annotated[bool, Meta(description="First cancel the batches of earlier sessions.")] = False
    forget_batches: Annotated[tuple[str, ...], Meta(description="First give up these batches.")] = ()
    preflight: Annotated[bool, Meta(description="Check server, model and key before the first call.")] = True
    max_usd: Annotated[NotNegative | None, Meta(description="Stop before the cost exceeds this.")] = None
    max_calls: Annotated[WholeNumber | None, Meta(description="Stop after this many calls.")] = None
    prices: Annotated[str, Meta(description="Your own prices (TOML).")] = ""
    price: Annotated[str | None, Meta(description="The model's price: US dollars for a million tokens.")] = None

    def terms(self, folder: Path) -> "CallTerms":
        """The terms of its calls; the file of prices is named from this folder."""
        from medthink.runs.manifest import CallTerms

        return CallTerms(
            base_urls=self.base_url,
            prices=folder / self.prices if self.prices else None,
            price=self.price,
            max_usd=self.max_usd,
            max_calls=self.max_calls,
            preflight=self.preflight,
            batch=self.batch,
            wait=self.wait,
            cancel_batches=self.cancel_batches,
            forget_batches=self.forget_batches,
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
    schema: Annotated[bool, Meta(description="Send the schema of the reply.")] = True

    @property
    def has_model(self) -> bool:
        """Whether a real model is asked; `baseline/rules` only repeats the stage's own rules."""
        from medthink.workflow.forms import RULES

        return self.model not in ("", RULES)

    def example_request(self) -> Request:
        """An almost empty request with these settings, to see whether the provider accepts them."""
        return Request(
            parts=(TextPart("?"),),
            schema=EXAMPLE_SCHEMA if self.schema else None,
            is_json_checked=False,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            effort=self.effort,
        )


class IngestSettings(StageSettings, frozen=True, kw_only=True):
    """Settings: the source of the raw cases, and defaults for all of them."""

    source: Annotated[str, Meta(description="The table of raw cases, or a folder with one.")]
    table: Annotated[str, Meta(description="The table's name, if the folder has several.")] = ""
    mapping: Annotated[str, Meta(description="A mapping file: which column holds which field (TOML).")] = ""
    licence: Annotated[str, Meta(description="The licence of every case whose row names none.")] = ""
    origin: Annotated[str, Meta(description="The source of every case whose row names none.")] = ""
    number_by: Annotated[
        Literal["id", "position"], Meta(description="What numbers the cases: the source's ids, or their positions.")
    ] = "id"
    one_row_per: Annotated[
        Literal["case", "image"], Meta(description="What a row is: a case, or an image of the case with its id.")
    ] = "case"
    image_dir: Annotated[
        str, Meta(description="The folder that image paths are relative to; default: the table's.")
    ] = ""
    needs_licence: Annotated[bool, Meta(description="Hold cases that state no licence.")] = True
    min_images: Annotated[int, Meta(description="Leave out cases with fewer images.", ge=0)] = 1
    max_images: Annotated[
        int, Meta(description="Maximum images per case; of a larger number, evenly spaced ones are kept.", ge=1, le=49)
    ] = 49
    frames: Annotated[int, Meta(description="Frames to take from a multi-frame file.", ge=1)] = 1
    burned_in: Annotated[
        Literal["review", "drop", "keep"],
        Meta(description="What to do with an image whose header reports burned-in text."),
    ] = "review"


class AliasSettings(ModelSettings, frozen=True, kw_only=True):
    """Settings: the names to collect, and their sources."""

    names_of: Annotated[
        Literal["gold", "all"], Meta(description="Names of the right diagnosis, or of all options.")
    ] = "all"
    alias_file: Annotated[str, Meta(description="A file of known names (TOML: diagnosis = [names]).")] = ""


class OptionSettings(ModelSettings, frozen=True, kw_only=True):
    """Settings: how the list is read, and the models whose wrong answers show hard distractors."""

    add_answer: Annotated[bool, Meta(description="Add the diagnosis if nothing in the list resembles it.")] = False
    distractor_runs: Annotated[tuple[str, ...], Meta(description="Runs whose wrong answers are hard distractors.")] = ()
    one_style: Annotated[bool, Meta(description="Write every name of every list in one style.")] = True


class LeakSettings(ModelSettings, frozen=True, kw_only=True):
    """Settings: what is checked, and the consequences."""

    ocr: Annotated[bool, Meta(description="Read text burned into images too (extra ocr).")] = False
    in_images: Annotated[
        Literal["review", "drop-image", "drop-case"],
        Meta(description="What to do with an image that names the diagnosis."),
    ] = "review"
    identifiers: Annotated[bool, Meta(description="Hold cases whose texts may identify a person.")] = True


class BalanceSettings(StageSettings, frozen=True, kw_only=True):
    """Settings: how far the options are balanced, and at what cost in cases."""

    max_rank_share: Annotated[
        float, Meta(description="Maximum share of cases for one length rank of the right option.", gt=0, le=1)
    ] = 0.23
    shorten: Annotated[bool, Meta(description="Remove brackets and trailing clauses from all options alike.")] = True
    hard_distractors: Annotated[
        int, Meta(description="How many hard distractors to keep: those that models chose most often.", ge=0, le=4)
    ] = 1


ProbeView = Literal["options", "question", "image", "one-image"]
GuesserView = Literal["options", "question", "images"]


class TextOnlySettings(CallSettings, frozen=True, kw_only=True):
    """Settings: the probes, the inputs they see, and when a case is left out."""

    model: Annotated[
        tuple[str, ...], Meta(description="Models to probe with, as in medthink run; may be repeated.")
    ] = ()
    views: Annotated[
        tuple[ProbeView, ...], Meta(description="What models are shown: options, question, image or one-image.")
    ] = ("question",)
    guessers: Annotated[
        tuple[GuesserView, ...],
        Meta(description="Inputs of the trained guessers: options, question or images; none for no guesser."),
    ] = ("options", "question")
    min_solved: Annotated[
        AtLeastOne | None, Meta(description="How many probes must solve a case for it to be left out; default: all.")
    ] = None
    min_probability: Annotated[
        float, Meta(description="Minimum probability that a guesser must give the right option.", gt=0, lt=1)
    ] = 0.4
    repeats: Annotated[int, Meta(description="How often guessers are retrained.", ge=1)] = 3


class IcdSettings(ModelSettings, frozen=True, kw_only=True):
    """Settings: what happens to a case that rules cannot code if no model is asked."""

    uncoded: Annotated[
        Literal["keep", "hold"],
        Meta(description="What to do with a case that cannot be coded: keep it, or hold it for review."),
    ] = "keep"


class ModalitySettings(ModelSettings, frozen=True, kw_only=True):
    """Settings: whether the other images of a case may decide for one, and what happens where nothing does."""

    infer_from_case: Annotated[bool, Meta(description="Use the modality shared by all other images of the case.")] = (
        True
    )
    unknown: Annotated[
        Literal["keep", "hold"],
        Meta(description="What to do with a case with an image of unknown modality: keep it, or hold it for review."),
    ] = "keep"


class DiscussionSettings(ModelSettings, frozen=True, kw_only=True):
    """Settings: how much may be removed before a person must check."""

    max_removed: Annotated[
        float,
        Meta(description="Maximum share of a discussion's sentences that may be removed automatically.", ge=0, le=1),
    ] = 0.5


class SplitSettings(StageSettings, frozen=True, kw_only=True):
    """Settings: the sizes of the splits, and their limits."""

    test_share: Annotated[float, Meta(description="The share of cases in the test split.", gt=0, le=1)] = 0.2
    validation_share: Annotated[float, Meta(description="The share of cases in a validation split.", ge=0, lt=1)] = 0.0
    max_rank_share: Annotated[
        float, Meta(description="Maximum share of cases for one length rank of the right option.", gt=0, le=1)
    ] = 0.23


class ExportSettings(StageSettings, frozen=True, kw_only=True):
    """Settings: the benchmark's folder and name."""

    out: Annotated[str, Meta(description="The benchmark's folder; default: benchmark/ in the work folder.")] = ""
    title: Annotated[str, Meta(description="The benchmark's name on its data card.")] = "A curated benchmark"
    format: Annotated[Literal["jsonl", "parquet"], Meta(description="File format of the splits.")] = "jsonl"


class StageEntry(NamedTuple):
    """The summary of a stage and its settings; the one stage that reads the source itself does not take cases."""

    summary: str
    settings: type[StageSettings]
    takes_cases: bool = True


STAGES = {
    "ingest": StageEntry("Read raw cases from a table and image files", IngestSettings, takes_cases=False),
    "aliases": StageEntry("Gather the other names of each diagnosis", AliasSettings),
    "options": StageEntry("Find the right diagnosis and its distractors in each list", OptionSettings),
    "leaks": StageEntry("Leave out cases whose history reveals the diagnosis", LeakSettings),
    "balance": StageEntry("Choose five options; even out lengths and letters", BalanceSettings),
    "textonly": StageEntry("Leave out cases that can be solved without the images", TextOnlySettings),
    "icd": StageEntry("Label each case with its ICD-10 chapter, block and category", IcdSettings),
    "timeline": StageEntry("Find the cases that were imaged at more than one time", ModelSettings),
    "modality": StageEntry("Label each image: CT, MRI, X-ray, ultrasound and so on", ModalitySettings),
    "discussion": StageEntry("Remove passages about dropped diagnoses from the discussions", DiscussionSettings),
    "split": StageEntry("Split the cases, near-duplicates together, and assign the letters", SplitSettings),
    "export": StageEntry("Write the benchmark with its data card", ExportSettings),
}


def stage_entry(name: str) -> StageEntry:
    """The entry of a stage, or UsageError with the closest name."""
    if name not in STAGES:
        raise UsageError(f"unknown stage {name!r}", remedy=suggest(name, STAGES, f"known: {', '.join(STAGES)}"))
    return STAGES[name]


def _spell(key: str) -> str:
    """A setting's name as its struct spells it."""
    return key.replace("-", "_").replace("license", "licence")


def read_stage_settings(name: str, fields: dict[str, Any]) -> StageSettings:
    """The settings of a stage from plain fields, or UsageError naming the one that is wrong."""
    kind = stage_entry(name).settings
    known = kind.__struct_fields__
    plain = {_spell(key): value for key, value in fields.items()}
    if strange := [key for key in plain if key not in known]:
        remedy = suggest(strange[0], known, f"settings of {name}: {', '.join(known) or 'none'}")
        raise UsageError(f"{name}: unknown setting {strange[0]!r}", remedy=remedy)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}", remedy=f"medthink curate {name} --help lists its settings") from None
