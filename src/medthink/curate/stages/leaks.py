"""Leaks: histories, file names and pictures that reveal the diagnosis before the images are seen.

A strong rule decides alone: the case is left out. A suspected leak waits for the model or a person. A negated mention
is a separate class and waits too. Captions are withheld from models, so leaks in them are only noted for the data card.
What may identify a person is looked for in every text that is published, and in what OCR reads in the pictures.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from medthink.cases.images.content import decode, flatten
from medthink.core.errors import DataError, UsageError
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import Quote, StageResult, drop_case, find_quote, hold_case, pass_case
from medthink.curate.draft import DISCUSSION, FINDINGS, HISTORY, Draft
from medthink.curate.mentions import (
    DecodedText,
    SpelledText,
    TargetName,
    TextMention,
    WordFrequency,
    options_of,
    strong_mentions,
    suspect_mentions,
)
from medthink.curate.names import name_key, split_differential
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import LeakSettings
from medthink.curate.stage import Drafts, Stage
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import TEXT, ReplyForm, list_of, object_of, one_of

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_PATTERNS = (
    ("date", r"\b(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d{2}|(?:19|20)\d{2}-\d{2}-\d{2})\b"),
    ("date", rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\s+(?:19|20)\d{{2}}\b"),
    ("date", rf"\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+(?:19|20)\d{{2}}\b"),
    ("e-mail", r"\b[\w.+-]+@[\w-]+\.[\w.]+\b"),
    ("telephone", r"(?<![\w.])(?:\+\d{1,3}[ -]?)?(?:\(\d{2,4}\)[ -]?)?\d{3,4}[ -]\d{3}[ -]?\d{3,4}(?![\w.])"),
    ("record number", r"\b(?i:MRN|patient id|record n(?:o|umber)|hospital n(?:o|umber)|accession)\W{1,3}\w*\d\w*"),
    ("name", r"\b(?:Mr|Mrs|Ms|Miss|Herr|Frau|Mme|Sig)\.?\s+[A-ZÀ-Þ][\w’'-]+"),
    ("name", r"\b(?i:patient|name|named|called)\s*:\s*[A-ZÀ-Þ][\w’'-]+,?\s+[A-ZÀ-Þ][\w’'-]+"),
    # As scanners write it into a picture.
    ("name", r"\b[A-ZÀ-Þ][\w’'-]+\^[A-ZÀ-Þ][\w’'-]*"),
    ("record number", r"\b(?:ID|PID|Pat\.?-?(?:ID|Nr|No)\.?)\s*[:#.]\s*\w*\d{3}\w*"),
    ("date of birth", r"\b(?i:DOB|date of birth|born on|geb\.?)\W{0,3}\d[\d./ -]{4,}\d"),
    ("age over 89", r"\b(?:9\d|1[01]\d)[- ]years?[- ]old\b"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


class Identifier(NamedTuple):
    """A passage that may identify a person, and its kind."""

    start: int
    end: int
    kind: str


def find_identifiers(text: str) -> list[Identifier]:
    """Every such passage, in the order of the text."""
    read = DecodedText.of(text)
    found = ((kind, match) for kind, pattern in _COMPILED for match in pattern.finditer(read.text))
    return sorted({Identifier(*read.span(*match.span()), kind) for kind, match in found})


_STRIP, _ENLARGED = 0.2, 3
# The longest side at which a complete picture, and a strip, is read: otherwise each takes seconds.
_WHOLE_SIDE, _STRIP_SIDE = 960, 1600
_CLOSE, _SHORTEST, _LONG = 88, 6, 12
_SHORTEST_PART, _LEAST_OF_READ, _LEAST_OF_NAME = 4, 0.9, 0.75


class BurnedInReader:
    """Reads text in pictures; the model is loaded for the first one."""

    @cached_property
    def _engine(self) -> Any:
        try:
            from rapidocr import RapidOCR
        except ImportError:
            raise UsageError("reading text in images needs rapidocr", remedy='pip install "medthink[ocr]"') from None
        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        # By default the engine enlarges a strip until its short side has 736 pixels, which takes ten times as long.
        limits = {"Det.limit_type": "max", "Det.limit_side_len": _STRIP_SIDE}
        return RapidOCR(params={"Global.log_level": "error"} | limits)

    def read(self, data: bytes, *, name: str) -> list[str]:
        """The distinct pieces of text in a picture."""
        picture = flatten(decode(data, name=name)).convert("RGB")
        found = [text for view in _views(picture) for text in self._read_view(view)]
        return list(dict.fromkeys(found))

    def _read_view(self, view: "PillowImage") -> list[str]:
        import numpy as np

        result = self._engine(np.asarray(view)[:, :, ::-1], use_cls=False)
        return [text.strip() for text in (result.txts or ()) if text.strip()]


def _views(picture: "PillowImage") -> Iterator["PillowImage"]:
    """The picture, enlarged if small, and the strips of one that is too large for that."""
    yield _scaled(picture, _WHOLE_SIDE)
    height = int(picture.height * _STRIP)
    if max(picture.size) * _ENLARGED <= _WHOLE_SIDE * 1.5 or height == 0:
        return
    for top in (0, picture.height - height):
        yield _scaled(picture.crop((0, top, picture.width, top + height)), _STRIP_SIDE)


def _scaled(picture: "PillowImage", longest: int) -> "PillowImage":
    scale = min(_ENLARGED, longest / max(picture.size))
    return picture.resize((max(1, int(picture.width * scale)), max(1, int(picture.height * scale))))


def find_written(name: str, texts: Sequence[str]) -> list[str]:
    """The pieces of text that spell the name, ignoring spaces and a wrong letter; none if it is not there.

    A long name may be read as several pieces, or with a gap where it crosses something as bright as its letters.
    """
    key = name_key(name)
    if len(key) < _SHORTEST:
        return []
    reads = {text: name_key(text) for text in texts}
    whole = [
        text
        for text, read in reads.items()
        if len(read) >= len(key) * _LEAST_OF_READ and fuzz.partial_ratio(read, key) >= _CLOSE
    ]
    if whole or len(key) < _LONG:
        return whole
    # Everything in a part belongs to the name: "carcinoma" is no part of "hepatocellular adenoma".
    parts = [
        text
        for text, read in reads.items()
        if len(read) >= _SHORTEST_PART and LCSseq.similarity(read, key) >= len(read) * _LEAST_OF_READ
    ]
    found = LCSseq.similarity("".join(reads[text] for text in parts), key)
    return parts if found >= len(key) * _LEAST_OF_NAME else []


_KINDS = ("exact", "synonym", "hedged", "negated", "unsure")
_LEVELS = {"exact": "L3", "synonym": "L2", "hedged": "L1"}


class LeakPassage(Struct, frozen=True, forbid_unknown_fields=True):
    """A passage that a model names."""

    quote: str
    kind: Literal["exact", "synonym", "hedged", "negated", "unsure"]


class LeakForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """A model's answer about a history."""

    passages: list[LeakPassage]


class LeakStage(Stage[LeakSettings]):
    """Leaves out cases that reveal the diagnosis; suspected ones wait."""

    name = "leaks"
    looks_at = ("history", "findings", "discussion", "diagnosis", "list", "images", "captions")

    def survey(self, drafts: Drafts) -> None:
        """Count the histories in which each word occurs."""
        self._frequency = WordFrequency()
        for draft in drafts():
            self._frequency.add(SpelledText(draft.case.question.history))

    @cached_property
    def _reader(self) -> BurnedInReader:
        return BurnedInReader()

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """Check the history first, then everything else that a model would see."""
        target = target_of(draft)
        history = SpelledText(draft.case.question.history)
        strong = strong_mentions(history, target)
        telling = [one for one in strong if one.level != "negated"]
        if telling:
            return drop_case(
                f"leak-{telling[0].level}", by=f"rule {telling[0].rule}", evidence=_quotes(history, telling)
            )
        suspects = suspect_mentions(history, target, self._frequency)
        if ask is not None:
            if (result := await self._ask(draft, ask, [*strong, *suspects], rulings)) is not None:
                return result
        else:
            _ask_person(history, strong, suspects, rulings)
        return self._look_further(draft, target, rulings)

    def _look_further(self, draft: Draft, target: TargetName, rulings: CaseRulings) -> StageResult:
        """Check everything except the history: file names, pictures, passages that may identify a person."""
        if named := [image.path for image in draft.case.question.images if _names(image.path, target)]:
            rulings.settle(hold_case("leak-file-name", by="rule file name", detail=", ".join(named)))
        if self.settings.identifiers and (personal := _personal_passages(draft)):
            kinds = ", ".join(dict.fromkeys(personal.values()))
            rulings.settle(hold_case("identifier", by="rule identifiers", detail=kinds, evidence=personal))
        return self._look_into_images(self._note_captions(draft, target), rulings)

    def _note_captions(self, draft: Draft, target: TargetName) -> Draft:
        """The draft with a note of the captions that name the diagnosis."""
        images = zip(draft.case.question.images, draft.case.reference.images, strict=True)
        slots = [image.slot for image, known in images if _names(known.caption, target)]
        return draft.with_mark(self.name, {"captions": slots}) if slots else draft

    def _look_into_images(self, draft: Draft, rulings: CaseRulings) -> StageResult:
        if not self.settings.ocr:
            return pass_case(draft)
        try:
            read = {
                image.slot: self._reader.read(image.read(), name=image.path) for image in draft.case.question.images
            }
        except DataError as error:
            rulings.settle(hold_case("image-unreadable", by="rule ocr", detail=f"{error.file}: {error.problem}"))
            return pass_case(draft)
        if self.settings.identifiers and (personal := _personal_texts(read)):
            rulings.settle(hold_case("identifier-in-image", by="rule ocr", detail=personal))
        told = {slot: found for slot, texts in read.items() if (found := _telling(texts, draft))}
        if not told:
            return pass_case(draft)
        detail = "; ".join(f"image {slot}: {' | '.join(texts)}" for slot, texts in told.items())
        rest = [slot for slot in range(1, len(draft.case.question.images) + 1) if slot not in told]
        if self.settings.in_images == "review":
            rulings.settle(hold_case("leak-in-image", by="rule ocr", detail=detail))
            return pass_case(draft)
        if self.settings.in_images == "drop-case" or not rest:
            return drop_case("leak-in-image", by="rule ocr", detail=detail)
        return pass_case(without_images(draft, told.keys()), reason="image-dropped", by="rule ocr", detail=detail)

    async def _ask(
        self, draft: Draft, ask: StageModel, found: list[TextMention], rulings: CaseRulings
    ) -> StageResult | None:
        """What the model finds, None if nothing; every passage must occur verbatim in the history."""
        history = draft.case.question.history
        doubtful = [{"quote": history[one.start : one.end], "kind": "unsure"} for one in found]
        prompt = curate_prompt(
            "leaks",
            draft.id,
            data={"diagnosis": draft.gold, "other_names": list(_aliases(draft)), "history": history},
            form={"passages": list_of(object_of(quote=TEXT, kind=one_of(_KINDS)))},
            by_rules={"passages": doubtful},
        )
        passages = (await ask(prompt, LeakForm, draft.id)).passages
        quotes = {one.quote: find_quote(draft, HISTORY, one.quote) for one in passages}
        if any(quote is None for quote in quotes.values()):
            raise Unanswered("unparsed", "a quoted passage does not occur verbatim in the history")
        evidence = [quote for quote in quotes.values() if quote is not None]
        telling = [one for one in passages if one.kind in _LEVELS]
        if telling:
            level = max(_LEVELS[one.kind] for one in telling)
            return drop_case(f"leak-{level}", by=ask.by, evidence=evidence)
        if passages:
            rulings.settle(hold_case(f"leak-{passages[0].kind}", by=ask.by, evidence=evidence))
        return None

    def not_covered(self) -> tuple[str, ...]:
        """Leaks that rules alone cannot find."""
        missing = []
        if not self.settings.has_model:
            missing.append("synonyms: rules miss about four in five of these leaks, and no model was asked")
        if not self.settings.ocr:
            missing.append("text burned into images: not read (ocr = true reads it)")
        return tuple(missing)


def target_of(draft: Draft) -> TargetName:
    """The names to look for in the texts of a case."""
    listed = draft.notes.candidates or tuple(draft.case.question.options.values())
    options = listed or tuple(split_differential(draft.notes.differential, draft.gold))
    return TargetName.of(draft.gold, aliases=_aliases(draft), others=options_of(options, draft.gold))


def without_images(draft: Draft, slots: Any) -> Draft:
    """The draft without the images of these slots; the others move up."""
    pairs = [
        (image, known)
        for image, known in zip(draft.case.question.images, draft.case.reference.images, strict=True)
        if image.slot not in slots
    ]
    images = tuple(replace(image, slot=slot) for slot, (image, _) in enumerate(pairs, start=1))
    rest = Draft(replace(draft.case, image_count=len(pairs)), draft.notes)
    return rest.with_question(images=images).with_reference(images=tuple(known for _, known in pairs))


def _aliases(draft: Draft) -> Iterator[str]:
    for name in dict.fromkeys((draft.gold, draft.notes.diagnosis)):
        yield from draft.notes.aliases.get(name, ())


def _personal_passages(draft: Draft) -> dict[Quote, str]:
    """What may identify a person in any text that is published, and of which kind it is."""
    images = zip(draft.case.question.images, draft.case.reference.images, strict=True)
    texts = {
        HISTORY: draft.case.question.history,
        FINDINGS: draft.case.reference.findings,
        DISCUSSION: draft.case.reference.discussion,
    } | {f"image_{image.slot:02d}_caption": known.caption for image, known in images}
    return {
        Quote(field, one.start, one.end, text[one.start : one.end]): one.kind
        for field, text in texts.items()
        for one in find_identifiers(text)
    }


def _personal_texts(read: dict[int, list[str]]) -> str:
    """What may identify a person in the text of the pictures."""
    found = {slot: [text for text in texts if find_identifiers(text)] for slot, texts in read.items()}
    return "; ".join(f"image {slot}: {' | '.join(texts)}" for slot, texts in found.items() if texts)


def _telling(texts: list[str], draft: Draft) -> list[str]:
    """The texts of an image that contain a name of the diagnosis."""
    names = [draft.gold, *draft.notes.aliases.get(draft.gold, ())]
    return list(dict.fromkeys(text for name in names for text in find_written(name, texts)))


def _names(text: str, target: TargetName) -> bool:
    return any(one.level != "negated" for one in strong_mentions(SpelledText(text), target))


def _ask_person(
    history: SpelledText, strong: list[TextMention], suspects: list[TextMention], rulings: CaseRulings
) -> None:
    """Ask what rules alone leave open."""
    for reason, found in (("leak-negated", strong), ("leak-suspect", suspects)):
        if found:
            rulings.settle(hold_case(reason, by=f"rule {found[0].rule}", evidence=_quotes(history, found)))


def _quotes(text: SpelledText, found: list[TextMention]) -> list[Quote]:
    return [Quote(HISTORY, one.start, one.end, text.text[one.start : one.end]) for one in found]


STAGE = LeakStage
