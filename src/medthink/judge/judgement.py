"""Judgements: one judge's verdicts on the units of one prediction, and its settings."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import force_setattr

from medthink.cases.case import Case, Image
from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.judge.units import UnitKey
from medthink.models.request import Effort
from medthink.workflow.forms import RULES
from medthink.workflow.view import Shown

UnjudgedKind = Literal[
    "too_many",
    "unsplit",
    "not_json",
    "wrong_form",
    "wrong_call",
    "wrong_ids",
    "contradictory",
    "refused",
    "truncated",
    "failed",
    "no_majority",
    "no_quorum",
]


class UnitVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A judge's verdict on one item, and the reason."""

    id: str
    reason: str


class Unjudged(msgspec.Struct, frozen=True):
    """The reason why there is no verdict; never counted as one."""

    kind: UnjudgedKind
    detail: str


Sight = Literal["history", "options", "images", "captions", "findings", "discussion", "diagnosis"]
SIGHTS: tuple[Sight, ...] = get_args(Sight)
# Everything the expert wrote, but not the images, which the embedded judge cannot see.
DEFAULT_SIGHT: tuple[Sight, ...] = ("history", "options", "captions", "findings", "discussion", "diagnosis")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence that a judge is given; a part that it may not see is already empty here.

    `captions` and `images` are those of the whole case: first those shown to the judged model, under the same numbers,
    then the others. `shown` is the number shown to it. `options` has the letters that model saw.
    """

    history: str = ""
    options: dict[str, str] = {}
    captions: tuple[str, ...] = ()
    findings: str = ""
    discussion: str = ""
    diagnosis: str = ""
    images: tuple[Image, ...] = ()
    shown: int = 0

    def data(self) -> dict[str, Any]:
        """The text parts by name, without empty ones."""
        captions = {f"image {k}": text for k, text in enumerate(self.captions, start=1) if text}
        parts: dict[str, Any] = {
            "history": self.history,
            "options": self.options,
            "captions": captions,
            "findings": self.findings,
            "discussion": self.discussion,
            "diagnosis": self.diagnosis,
        }
        return {name: part for name, part in parts.items() if part}

    def names(self) -> tuple[str, ...]:
        """The names a verdict may give as its grounds."""
        captions = [f"caption {k}" for k, text in enumerate(self.captions, start=1) if text]
        images = [f"image {k}" for k in range(1, len(self.images) + 1)]
        texts = [name for name in self.data() if name != "captions"]
        return (*texts, *captions, *images, "general knowledge", "nothing")


def gather_evidence(case: Case, shown: Shown, sight: tuple[Sight, ...]) -> Evidence:
    """The parts of the case the judge may see, whether or not the judged model was shown them."""
    seen = set(sight)
    images = case.question.images
    rest = [place for place in range(len(images)) if place not in shown.positions]
    return Evidence(
        history=case.question.history if "history" in seen else "",
        options=(shown.question.options or case.question.options) if "options" in seen else {},
        captions=tuple(case.reference.images[k].caption for k in (*shown.positions, *rest))
        if "captions" in seen
        else (),
        findings=case.reference.findings if "findings" in seen else "",
        discussion=case.reference.discussion if "discussion" in seen else "",
        diagnosis=case.reference.answer_text if "diagnosis" in seen else "",
        images=(*shown.question.images, *(images[place] for place in rest)) if "images" in seen else (),
        shown=len(shown.positions),
    )


def parse_sight(text: str) -> tuple[Sight, ...]:
    """Read `history,findings,…`, or raise UsageError; the order is always the same."""
    words = set(text.replace(",", " ").split())
    unknown = words - set(SIGHTS)
    if unknown or not words:
        raise UsageError(
            f"a judge cannot be shown {', '.join(sorted(unknown)) or 'nothing'}", remedy=f"known: {', '.join(SIGHTS)}"
        )
    return in_order(words)


def default_sight(judge: str) -> tuple[Sight, ...]:
    """What a judge sees by default: all that it can; only the images show whether a finding was invented."""
    return DEFAULT_SIGHT if judge == RULES else SIGHTS


def in_order(sight: Collection[str]) -> tuple[Sight, ...]:
    """The parts in the order in which they are always written."""
    return tuple(name for name in SIGHTS if name in sight)


PANEL = "panel"

JudgedState = Literal["ok", "unjudged", "absent"]


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a judge: the parts of the case that it sees, and the parameters of its calls."""

    sees: tuple[Sight, ...]
    effort: Effort | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    use_schema: bool = True

    def __post_init__(self) -> None:
        # 0 and 0.0, and the same parts in another order, are one setting: else they would be asked and paid for twice.
        force_setattr(self, "sees", in_order(self.sees))
        if self.temperature is not None:
            force_setattr(self, "temperature", float(self.temperature))


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A judge with its settings and prompt version; judgements of one configuration may be counted together."""

    judge: str
    setting: JudgeSettings
    prompt: str

    @property
    def is_smoke_test(self) -> bool:
        """Whether this is the embedded judge, a smoke test whose verdicts say nothing about a run."""
        return self.judge == RULES

    def label(self, images: str | None = None) -> str:
        """A short label; `images` says what was really attached, else the setting is shown."""
        if self.judge == PANEL:
            return PANEL
        parts = [self.judge, images or ("with images" if "images" in self.setting.sees else "without images")]
        parts += [f"effort {self.setting.effort}"] if self.setting.effort else []
        parts += [f"temperature {self.setting.temperature:g}"] if self.setting.temperature is not None else []
        return " · ".join([*parts, "smoke test"] if self.is_smoke_test else parts)


class Judgement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One judge's verdicts on one prediction.

    `state` is "ok", "unjudged" (there is no verdict; `why` and `detail` give the reason) or "absent" (there is nothing
    to judge). `verdicts` are of the kind `what`, in the order of its items, which they name by id. `model` is the name
    that the provider reported, `images` how many were attached (None if no model was asked),
    `judged_at` when the last call was answered, `tries` how many replies were needed, and `calls` are their ids in
    `judge.sqlite`. `round` counts how often it was repeated because it was unjudged. `ties` are items on which a panel
    has no majority.
    """

    case: int
    sample: int
    what: str
    judge: str
    repeat: int
    state: JudgedState
    why: UnjudgedKind | None = None
    detail: str = ""
    setting: JudgeSettings
    prompt: str
    model: str = ""
    images: int | None = None
    judged_at: str | None = None
    tries: int = 0
    calls: tuple[int, ...] = ()
    cost_usd: float | None = None
    round: int = 0
    verdicts: tuple[UnitVerdict, ...] = ()
    ties: tuple[str, ...] = ()

    @property
    def key(self) -> UnitKey:
        """Identifies the units it is about."""
        return (self.case, self.sample, self.what)

    @property
    def seat(self) -> JudgeConfig:
        """The judge, its settings, and its prompt version."""
        return JudgeConfig(judge=self.judge, setting=self.setting, prompt=self.prompt)

    @property
    def order(self) -> tuple[object, ...]:
        """Its sort key in the file; two rows with the same key are the same judgement made twice."""
        setting = msgspec.json.encode(self.setting)
        return (self.case, self.sample, self.what, self.judge, setting, self.prompt, self.repeat)


def label_judges(judgements: Iterable[Judgement]) -> dict[JudgeConfig, str]:
    """A short label for every judge that gave verdicts, with the images that were really attached."""
    groups: dict[JudgeConfig, list[Judgement]] = {}
    for one in judgements:
        if one.state == "ok":
            groups.setdefault(one.seat, []).append(one)
    return {seat: seat.label(_tell_images(seat, rows)) for seat, rows in groups.items()}


def _tell_images(seat: JudgeConfig, rows: Sequence[Judgement]) -> str | None:
    """Whether images were attached, or to how many judgements; None where that was not recorded."""
    if "images" not in seat.setting.sees or any(row.images is None for row in rows):
        return None
    attached = sum(bool(row.images) for row in rows)
    if attached == len(rows):
        return "with images"
    return f"images attached to {attached:,} of {len(rows):,}"


def name_judges(labels: Mapping[JudgeConfig, str]) -> dict[JudgeConfig, str]:
    """A distinct name for each judge configuration."""
    given = list(labels.values())
    return {
        seat: label if given.count(label) == 1 else f"{label} · {digest_value(msgspec.to_builtins(seat))[:8]}"
        for seat, label in labels.items()
    }


def digest_judgements(judgements: Iterable[Judgement]) -> str:
    """The digest of the judgements, so that derived results can detect whether they have changed."""
    return digest_value([msgspec.to_builtins(one) for one in judgements])


# Amazon's names begin with a region and a vendor, and end in a version: us.anthropic.claude-sonnet-4-5-20250929-v1:0.
_VENDOR = re.compile(
    r"^(?:(?:us|eu|apac|global|jp|au|us-gov)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|nvidia|openai|qwen|writer|zai)\."
)
# What names a release, a stage, a way of serving or a precision of the same model, at the end of its name.
_TAILS = (
    r"v\d+:\d+",
    r"20\d{2}-?[01]\d(?:-?[0-3]\d)?|(?:0[1-9]|1[0-2])-?[0-3]\d|2[3-9](?:0[1-9]|1[0-2])",
    r"latest|preview|exp|experimental|instruct|chat|it",
    r"free|online|beta|nitro|floor|extended|exacto|thinking",
    r"awq|gptq|gguf|ggml|exl2|mlx|marlin|bnb|unsloth|dynamic|quantized|hf",
    r"(?:nv|mx)?fp(?:4|8|16|32)|bf16|int[48]|nf4|w\d+a\d+|[48]-?bit|i?q[2-8](?:-(?:k|0|1))?(?:-(?:xs|s|m|l))?",
)
_TAIL = re.compile(rf"(?:[-:@](?:{'|'.join(_TAILS)}))+$")
_MARKS = re.compile(r"[\s_.]+")


def model_identity(name: str) -> str:
    """A model's name without provider, organisation, date, precision, tag and spelling; "" where there is none."""
    last = _VENDOR.sub("", name.strip().lower().rstrip("/").rpartition("/")[2])
    return _TAIL.sub("", _MARKS.sub("-", last)).replace(":", "-")
