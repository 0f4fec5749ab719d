"""Modality of each image: from its file, its caption, the other images of the case, or a model that sees it.

Labels of the source or a DICOM header are kept. A caption that names a modality decides. An image without any clue may
be given the modality of all other images of the case, and is then marked as inferred. A model is asked about the rest,
or a person decides, or they stay unknown. Level-2 names are proposals.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from medthink.cases.case import MODALITIES, UNKNOWN_MODALITY, ImageReference
from medthink.core.errors import DataError
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import Quote, StageResult, hold_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import ModalitySettings
from medthink.curate.stage import Stage
from medthink.workflow.forms import ReplyForm, one_of

_TABLE = Path(__file__).parents[1] / "data" / "modalities.toml"
# How level-2 names in the released data spell their parent: Other_Xray.
_SHORT = dict(
    zip(
        MODALITIES,
        ("CT", "MRI", "Xray", "Ultrasound", "Pathology", "Photography", "Nuclear", "Endoscopy", "Nonmodality"),
        strict=True,
    )
)
# Images that are mentioned but not shown: "as seen on CT", "compared with the radiograph", "before MRI".
_ELSEWHERE = re.compile(
    r"\b(?:as (?:seen|shown|noted|described) (?:on|in|at)|compar(?:ed|ison) (?:to|with)|correlat\w+ (?:to|with)"
    r"|prior to|before|unlike|than (?:on|in)|not (?:seen|visible|shown) (?:on|in|at)|previous"
    r"|confirmed (?:on|by|at)|see)"
    r"\s+(?:\w+\s+){0,3}$",
    re.IGNORECASE,
)
_JOINED = re.compile(r"[\w-]*\s*(?:and|or|,|/|&|\+)\s*(?:\w+\s+)?", re.IGNORECASE)


class ModalityWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of one modality."""

    name: str
    capitals: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    described: tuple[str, ...] = ()


class FinerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A level-2 name, and the words that give it."""

    modality: str
    name: str
    pattern: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    modality: tuple[ModalityWords, ...]
    finer: tuple[FinerName, ...]


class NamedModality(NamedTuple):
    """A modality given by a caption: its words, whether it is named explicitly, and other modalities named."""

    modality: str
    start: int
    end: int
    is_named: bool
    also: tuple[str, ...] = ()


def modality_of(caption: str) -> NamedModality | None:
    """The modality of a caption; the first of several named ones wins; None if there is no clue."""
    named = sorted(_find_named(caption), key=lambda one: (one.start, -one.end))
    shown = [one for one in named if not _ELSEWHERE.search(caption[: one.start])] or named
    if not shown:
        return _find_described(caption)
    first = shown[0]
    others = [one for one in shown if one.modality != first.modality]
    if others and _JOINED.fullmatch(caption[first.end : others[0].start]):
        return None  # "ultrasound and MRI images": either
    return first._replace(also=tuple(dict.fromkeys(one.modality for one in others)))


def sub_modality_of(modality: str, caption: str) -> str:
    """A proposal for the level-2 name: one known from released data, else `Other_` and the parent."""
    for finer in _table().finer:
        if finer.modality == modality and re.search(finer.pattern, caption, re.IGNORECASE):
            return finer.name
    return f"Other_{_SHORT[modality]}"


def _find_named(caption: str) -> Iterator[NamedModality]:
    taken: list[tuple[int, int]] = []
    for modality, pattern in _named_patterns().items():
        for match in pattern.finditer(caption):
            if not any(start <= match.start() < end for start, end in taken):
                taken.append(match.span())
                yield NamedModality(modality, *match.span(), is_named=True)


def _find_described(caption: str) -> NamedModality | None:
    found = [
        NamedModality(modality, *match.span(), is_named=False)
        for modality, pattern in _described_patterns().items()
        if (match := pattern.search(caption))
    ]
    # Words of two modalities decide nothing.
    return found[0] if len(found) == 1 else None


@cache
def _table() -> _Table:
    return msgspec.toml.decode(_TABLE.read_bytes(), type=_Table)


@cache
def _named_patterns() -> dict[str, re.Pattern[str]]:
    return {one.name: _named_pattern(one) for one in _table().modality}


def _named_pattern(one: ModalityWords) -> re.Pattern[str]:
    capitals = [rf"{re.escape(word)}(?![A-Za-z])" for word in sorted(one.capitals, key=len, reverse=True)]
    words = [rf"(?i:{re.escape(word)}\w*)" for word in sorted(one.words, key=len, reverse=True)]
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join([*one.patterns, *capitals, *words])})")


@cache
def _described_patterns() -> dict[str, re.Pattern[str]]:
    words = {one.name: one.described for one in _table().modality if one.described}
    return {name: re.compile(rf"(?<!\w)(?:{'|'.join(found)})", re.IGNORECASE) for name, found in words.items()}


_UNSURE = "cannot tell"
_SLOT = re.compile(r"\s*(\d{1,2})\s*[=:]\s*(.+?)\s*")


class ModalityForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """A model's answer about the modality of an image."""

    modality: str


class SettledModality(NamedTuple):
    """An image's modality, its source, and the words of the caption that give it."""

    modality: str
    by: str
    quote: Quote | None = None
    also: tuple[str, ...] = ()


class ModalityStage(Stage[ModalitySettings]):
    """Labels each image with its modality."""

    name = "modality"
    looks_at = ("images", "captions")

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """Label every image; a case with one that cannot be labelled is kept or left open, as the settings say."""
        settled = _settle(draft)
        if self.settings.infer_from_case:
            settled = _with_siblings(settled)
        for place, image in enumerate(draft.case.question.images):
            if settled[image.slot] is None and ask is not None:
                settled[image.slot] = await self._ask(draft, place, ask)
        found = {slot: one for slot, one in settled.items() if one is not None}
        quotes = [one.quote for one in found.values() if one.quote is not None]
        missing = [slot for slot in settled if slot not in found]
        if missing and self.settings.unknown == "keep":
            nothing = SettledModality(UNKNOWN_MODALITY, "rule nothing states it")
            found |= dict.fromkeys(missing, nothing)
        elif missing:
            question = hold_case(
                "modality-unknown",
                by=ask.by if ask else "rule caption",
                detail=f"no modality found for image slots {', '.join(map(str, missing))}",
                proposal=_proposal(found),
                evidence=quotes,
            )
            told = rulings.value_of(question, lambda value: _read_ruling(value, missing))
            found |= {slot: SettledModality(name, "person") for slot, name in told.items()}
        by = ", ".join(sorted({one.by for one in found.values()})) or "rule no image"
        is_known = all(one.modality != UNKNOWN_MODALITY for one in found.values())
        reason = ("labelled" if is_known else "modality-unknown") if found else "no-image"
        return pass_case(_labelled(draft, found), reason=reason, by=by, evidence=quotes)

    async def _ask(self, draft: Draft, place: int, ask: StageModel) -> SettledModality | None:
        image, caption = draft.case.question.images[place], draft.case.reference.images[place].caption
        prompt = curate_prompt(
            "modality",
            draft.id,
            data={"slot": image.slot, "caption": caption},
            form={"modality": one_of([*MODALITIES, _UNSURE])},
            by_rules={"modality": _UNSURE},
            images=(image,),
        )
        reply = await ask(prompt, ModalityForm, draft.id)
        return SettledModality(reply.modality, ask.by) if reply.modality in MODALITIES else None

    def not_covered(self) -> tuple[str, ...]:
        """The content of images, if no model is asked."""
        return (
            ()
            if self.settings.has_model
            else ("what the images themselves show: modalities are read from captions and files",)
        )


def _settle(draft: Draft) -> dict[int, SettledModality | None]:
    return {image.slot: _by_file_or_caption(draft, place) for place, image in enumerate(draft.case.question.images)}


def _by_file_or_caption(draft: Draft, place: int) -> SettledModality | None:
    image, reference = draft.case.question.images[place], draft.case.reference.images[place]
    if reference.modality in MODALITIES:
        return SettledModality(reference.modality, "the source")
    found = modality_of(reference.caption)
    if found is None:
        return None
    words = reference.caption[found.start : found.end]
    quote = Quote(f"image_{image.slot:02d}_caption", found.start, found.end, words)
    return SettledModality(
        found.modality, "rule caption" if found.is_named else "rule words of the caption", quote, found.also
    )


def _with_siblings(settled: dict[int, SettledModality | None]) -> dict[int, SettledModality | None]:
    known = {one.modality for one in settled.values() if one is not None}
    if len(known) != 1:
        return settled
    inferred = SettledModality(known.pop(), "inferred from siblings")
    return {slot: one or inferred for slot, one in settled.items()}


def _labelled(draft: Draft, found: dict[int, SettledModality]) -> Draft:
    images = tuple(
        _label(reference, found[image.slot])
        for image, reference in zip(draft.case.question.images, draft.case.reference.images, strict=True)
    )
    mark = {
        str(slot): one.by + (f"; also named: {', '.join(one.also)}" if one.also else "") for slot, one in found.items()
    }
    return draft.with_reference(images=images).with_mark("modality", mark) if found else draft


def _label(reference: ImageReference, settled: SettledModality) -> ImageReference:
    if settled.modality == UNKNOWN_MODALITY:
        return replace(reference, modality=UNKNOWN_MODALITY)
    finer = reference.sub_modality or sub_modality_of(settled.modality, reference.caption)
    return replace(reference, modality=settled.modality, sub_modality=finer)


def _proposal(found: dict[int, SettledModality]) -> str:
    most = Counter(one.modality for one in found.values()).most_common(1)
    return most[0][0] if most else ""


def _read_ruling(ruling: str, open_slots: list[int]) -> dict[int, str]:
    """One modality for all slots without one, or `3=CT; 4=MRI`, which names each of them and no other."""
    if ruling in MODALITIES:
        return dict.fromkeys(open_slots, ruling)
    matches = [_SLOT.fullmatch(part) for part in ruling.split(";") if part.strip()]
    told = {int(match[1]): match[2] for match in matches if match}
    if len(told) != len(matches) or set(told) != set(open_slots) or not set(told.values()) <= set(MODALITIES):
        example = "; ".join(f"{slot}={name}" for slot, name in zip(open_slots, MODALITIES, strict=False))
        problem = f"{ruling!r} does not name the modality of image slots {', '.join(map(str, open_slots))}"
        raise DataError(problem, remedy=f"name one of the nine for each of these slots and no other, as in {example}")
    return told


STAGE = ModalityStage
