"""What one judge said about the units of one prediction, and how it was asked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from medthink.core.digest import digest_value
from medthink.judge.evidence import Sight
from medthink.judge.units import UnitKey
from medthink.judge.verdicts import UnitVerdict, UnjudgedKind
from medthink.models.request import Effort
from medthink.workflow.forms import RULES

PANEL = "panel"

JudgedState = Literal["ok", "unjudged", "absent"]


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a judge is asked: what it sees of the case, and the parameters of the calls."""

    sees: tuple[Sight, ...]
    effort: Effort | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    use_schema: bool = True


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges, how, and with which prompt; judgements of one seat may be counted together."""

    judge: str
    setting: Setting
    prompt: str

    @property
    def is_smoke_test(self) -> bool:
        """Whether this is the embedded judge, a smoke test that says nothing about a run."""
        return self.judge == RULES

    def label(self, images: str | None = None) -> str:
        """The seat in a few words; `images` says what was really attached, else the setting is shown."""
        if self.judge == PANEL:
            return PANEL
        parts = [self.judge, images or ("with images" if "images" in self.setting.sees else "without images")]
        parts += [f"effort {self.setting.effort}"] if self.setting.effort else []
        parts += [f"temperature {self.setting.temperature:g}"] if self.setting.temperature is not None else []
        return " · ".join([*parts, "smoke test"] if self.is_smoke_test else parts)


class Judgement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one judge said about one prediction.

    `state` is "ok", "unjudged" (there is no verdict; `why` and `detail` give the reason) or "absent" (there is nothing
    to judge). `verdicts` are of the kind `what`, in the order of its items, which they name by id. `model` is the name
    that the provider reported, `images` how many were attached (None if no model was asked),
    `judged_at` when the last call was answered, `tries` how many replies were needed, and `calls` are their ids in
    `judge.sqlite`. `round` counts how often it was repeated because it was unjudged. `ties` are items on which a panel
    is divided.
    """

    case: int
    sample: int
    what: str
    judge: str
    repeat: int
    state: JudgedState
    why: UnjudgedKind | None = None
    detail: str = ""
    setting: Setting
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
    def seat(self) -> Seat:
        """Who judged, how, and with which prompt."""
        return Seat(judge=self.judge, setting=self.setting, prompt=self.prompt)

    @property
    def order(self) -> tuple[object, ...]:
        """Its sort key in the file; two rows with the same key are the same judgement made twice."""
        setting = msgspec.json.encode(self.setting)
        return (self.case, self.sample, self.what, self.judge, setting, self.prompt, self.repeat)


def label_seats(judgements: Iterable[Judgement]) -> dict[Seat, str]:
    """A short label for every seat that gave verdicts, with the images that were really attached."""
    groups: dict[Seat, list[Judgement]] = {}
    for one in judgements:
        if one.state == "ok":
            groups.setdefault(one.seat, []).append(one)
    return {seat: seat.label(_tell_images(seat, rows)) for seat, rows in groups.items()}


def _tell_images(seat: Seat, rows: Sequence[Judgement]) -> str | None:
    """Whether images were attached, or to how many judgements; None where that was not recorded."""
    if "images" not in seat.setting.sees or any(row.images is None for row in rows):
        return None
    attached = sum(bool(row.images) for row in rows)
    if attached == len(rows):
        return "with images"
    return f"images attached to {attached:,} of {len(rows):,}"


def name_seats(labels: Mapping[Seat, str]) -> dict[Seat, str]:
    """A distinct name for each seat."""
    given = list(labels.values())
    return {
        seat: label if given.count(label) == 1 else f"{label} · {digest_value(msgspec.to_builtins(seat))[:8]}"
        for seat, label in labels.items()
    }


def digest_judgements(judgements: Iterable[Judgement]) -> str:
    """The digest of the judgements, so that what is derived from them can tell whether they have changed."""
    return digest_value([msgspec.to_builtins(one) for one in judgements])
