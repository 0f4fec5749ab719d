"""Timeline: whether the case was imaged at more than one time, with the sentences that say so.

Numbers, ranges, fractions, units and dates are tokens first: rules apply to spans of time, not to their digits.
Rules look for two imaging events separated in time. Where they find any, a model (if there is one) reads the texts and
quotes the events; its quotes must occur verbatim in the texts. The order of images is not evidence.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from medthink.core.errors import DataError
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import Quote, StageResult, find_quote, hold_case, pass_case
from medthink.curate.draft import FINDINGS, HISTORY, Draft
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import ModelSettings
from medthink.curate.stage import Stage
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import TEXT, ReplyForm, list_of, object_of
from medthink.workflow.sentences import split_sentences

TimelineRule = Literal["interval", "follow-up", "comparison", "repeated", "dates", "after treatment"]


def _any(words: str) -> str:
    """One of these words or patterns, in any case."""
    return f"(?i:{'|'.join(words.split())})"


_WORDS = (
    "an? one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    r" eighteen nineteen (?:twenty|thirty|forty|fifty)(?:-\w+)? several a\sfew few some (?:a\s)?couple\sof half\san?"
)
_DIGITS = r"\d+\s?[½¼¾]|\d+\s\d/\d|\d+/\d|\d+(?:[.,]\d+)?|[½¼¾]"
_NUMBER = rf"(?:{_DIGITS}|{_any(_WORDS)})"
_UNIT = _any(r"hours? hrs? days? weeks? wks? months? mos? mths? years? yrs? decades?")
# The whole number with its unit, so that "1.5 years" is never five years, nor "12–18 months" eighteen.
_SPANS = re.compile(
    rf"(?<![\w/–—-])(?<!\d[.,])(?:{_NUMBER}(?:\s+(?i:and\s+a\s+half)|\s*(?:[-–—]|\b(?i:to|or)\b)\s*{_NUMBER})?"
    rf"[\s-]*(?i:full\s+)?{_UNIT}(?:\s+(?i:and\s+a\s+half))?|\d+(?:[.,]\d+)?\s?h)(?!\w)(?![\s-]+old\b)"
)
# A span in a tokenised text: one word that no text has.
_MARK = "ˣ"
_SPAN = rf"{_MARK}\d+{_MARK}"
_MODALITY = (
    r"CT|CTA|CECT|NECT|HRCT|MDCT|CBCT|CTs|MRI|MRIs|MR|MRA|MRCP|fMRI|PET(?:[/-]?\s?CT)?|FDG|SPECT|DSA|US|USG|CXR|HSG"
)
_EXAMINATION = _any(
    r"scan(?:s|ned|ning)? tomogra\w+ magnetic\sresonance\w* ultrasono\w+ ultrasounds? sonogra\w+ radiogra\w+ x-?rays?"
    r" plain\sfilms? mammogra\w+ angiogra\w+ fluorosc\w+ echocardiogra\w+ scintigra\w+ imaging imaged barium\s\w+"
    r" urogra\w+ cystogra\w+ myelogra\w+ arthrogra\w+ venogra\w+ bone\ssurvey radiological\s(?:exam\w*|follow-up)"
)
_IMAGING = rf"(?:{_MODALITY}|{_EXAMINATION})(?!\w)"
IMAGING = re.compile(rf"(?<![\w-]){_IMAGING}")


def _then_imaging(words: int) -> str:
    """So many words and an examination."""
    return rf"(?:[\s,(-]+[\w’'/-]+){{0,{words}}}?[\s,(-]+{_IMAGING}"


_LATER = re.compile(
    rf"\b(?P<span>{_SPAN})\s+(?:later|afterwards|thereafter|subsequently)\b"
    rf"|\bafter\s+(?:about\s+|approximately\s+|around\s+|only\s+|another\s+)?(?P<after>{_SPAN})\b"
    r"(?!\s+of\s+(?:pain|symptom|fever|onset))"
    rf"|\bat\s+(?:the\s+)?(?P<at>{_SPAN})[\s-]+(?:follow|post|control)"
    rf"|\b(?P<long>{_SPAN})[\s-]+(?:follow-?\s?up|control)\b"
    rf"|\b(?P<post>{_SPAN})\s+(?:after|following|post)\b",
    re.IGNORECASE,
)
_EARLIER = re.compile(rf"\b(?P<span>{_SPAN})\s+{_any('earlier before ago prior previously beforehand back')}\b", re.I)
_AGAIN = _any(
    r"follow(?:ing)?-?\s?up control repeat(?:ed)? serial surveillance re-?evaluation interval biennial(?:ly)?"
    r" annual(?:ly)? yearly monthly periodic regular"
)
_CONTROL = _any(r"follow-?\s?up controls?")
_FOLLOW_UP = re.compile(
    rf"\b{_AGAIN}\b{_then_imaging(4)}"
    rf"|(?<![\w-]){_IMAGING}(?:[\s,(-]+[\w’'/-]+){{0,3}}?[\s,(-]+{_CONTROL}\b"
    r"(?!\s+(?:period|visit|appointment|clinic))"
)
# "Two years earlier" is no earlier examination.
_NO_SPAN = f"(?<!{_MARK} )"
_COMPARISON = re.compile(
    rf"\b{_NO_SPAN}{_any('previous prior earlier older old preceding past')}\b"
    rf"(?!\s+(?:surg|history|episode|medical|trauma)){_then_imaging(3)}"
    rf"|\b{_any('compared comparison comparing')}\s{_any('to with')}\s(?:\w+\s){{0,2}}"
    rf"{_any('previous prior earlier baseline last')}\b"
    rf"|\b(?i:baseline)\b{_then_imaging(2)}"
)
_NOT_COMPARED = re.compile(
    r"\b(?:no|without|any|lack of|unavailab\w+|not available)\b[^.;]{0,25}\b(?:previous|prior|earlier|old(?:er)?)\b"
    r"|\b(?:previous|prior)\b[^.;]{0,40}\b(?:not available|unavailable|were not|was not available)\b",
    re.IGNORECASE,
)
_ANOTHER = _any(r"second third fourth another new last latest most\srecent")
_REPEATED = re.compile(rf"\b{_ANOTHER}\b(?!\s+(?:onset|born)){_then_imaging(3)}")
_TREATMENT = _any(
    r"treatment surgery therapy chemotherapy radiotherapy resection emboli[sz]ation antibiotics? drainage"
    r" completion\sof\s\w+ the\soperation \w+\scycles"
)
_TREATED = re.compile(
    r"\b(?i:post-?\s?(?:operative(?:ly)?|treatment|therap\w+|surg\w+|procedural|emboli[sz]ation|chemotherapy))\b"
    rf"{_then_imaging(4)}|\b{_any('after following')}\s+{_TREATMENT}\b[^.;]{{0,60}}(?<![\w-]){_IMAGING}"
)
_LOST = re.compile(r"\b(?:lost to|no|without|refused) follow-?\s?up\b", re.IGNORECASE)
_PLANNED = re.compile(
    rf"\b{_any('recommended advised advise scheduled planned suggested should will awaiting proposed requested')}\b"
)
_CHANGE = re.compile(
    r"\b"
    + _any(
        r"progress\w* regress\w* increas\w+ decreas\w+ stable stability unchanged no\s(?:\w+\s)?change"
        r" resol(?:ved|ution)"
        r" disappear\w* recover\w* gr[eo]w(?:th|n|ing)? enlarg\w+ reduc\w+ improv\w+ persist\w* larger smaller new\b"
        r" worsen\w* normali[sz]\w+ evolution complete\sresponse shr[aiu]nk\w* remain\w*"
    )
)
_CLINICAL = re.compile(
    r"\b"
    + _any(
        r"surg\w+ \w+ectomy \w+plasty \w+otomy operat\w+ accident trauma\w* fall fell onset symptom\w* pain fever"
        r" diagnos\w+ admission admitted delivery birth history\sof presented complain\w* treated biopsy implant\w*"
        r" transplant\w* vaccin\w+ started injury intervention resected excised removed underwent"
    )
    + r"\b"
)
_AGE = re.compile(r"\b(?:at|in)\s+(?:the\s+)?(?P<when>\d{1,2}(?:st|nd|rd|th)?)\s+(?P<unit>weeks?|months?)\b", re.I)
_YEAR = re.compile(r"\b(?:in|of|from|since)\s+(?:\w+\s+)?((?:19|20)\d\d)\b")
# What dates an examination by standing next to it.
_DATE = re.compile(
    r"\b(?P<day>\d{1,2})[./](?P<month>\d{1,2})[./](?P<year>(?:19|20)?\d\d)\b"
    r"|\b(?P<iso>(?:19|20)\d\d-\d\d-\d\d)\b"
    r"|\((?P<bracket>(?:19|20)\d\d)\)"
    r"|\b(?i:day|week|month|year)\s+(?P<count>\d{1,3})\b"
)
_MOST_COUNTED, _NEAR_WORDS = 9, 6


class TimedEvent(NamedTuple):
    """A sentence that separates an examination in time: where it is, by which rule, and the interval it names."""

    field: str
    start: int
    end: int
    rule: TimelineRule
    interval: str


class Timeline(NamedTuple):
    """What the texts say about time; no event if there is only one time point."""

    events: tuple[TimedEvent, ...]

    @property
    def is_longitudinal(self) -> bool:
        """Whether the case was imaged at more than one time."""
        return bool(self.events)

    @property
    def timepoints(self) -> int:
        """The number of distinct time points: the first one, and each that a sentence separates from it."""
        return min(_MOST_COUNTED, 1 + len(self.events)) if self.events else 1

    @property
    def interval_text(self) -> str:
        """The interval in the text's own words, "unknown" where it names none, "" for a single time."""
        return next((event.interval for event in self.events if event.interval), "unknown" if self.events else "")


class _Sentence(NamedTuple):
    """A sentence as written, and with a token for each span of time that it names."""

    field: str
    start: int
    end: int
    written: str
    text: str
    spans: tuple[str, ...]
    has_imaging: bool


def read_timeline(texts: Mapping[str, str]) -> Timeline:
    """The timeline of a case from its texts by field, in the order in which they are read."""
    sentences = [one for field, text in texts.items() for one in _sentences(field, text)]
    events: list[TimedEvent] = []
    imaged_before = 0
    for place, sentence in enumerate(sentences):
        after = sentences[place + 1].text if place + 1 < len(sentences) else ""
        rule, interval = _judge(sentence, imaged_before=imaged_before, after=after)
        if rule is not None:
            events.append(TimedEvent(sentence.field, sentence.start, sentence.end, rule, interval))
        imaged_before += sentence.has_imaging
    if not events and (dated := _dated(sentences)) is not None:
        events.append(dated)
    # A single examination in all the texts is one time point, whatever is said about it.
    examinations = sum(len(IMAGING.findall(sentence.text)) for sentence in sentences)
    examinations += any(event.rule == "comparison" for event in events)  # the one compared with
    found = [*(events if examinations >= 2 else ()), *_aged(sentences)]
    return Timeline(tuple(dict.fromkeys(found)))


def _sentences(field: str, text: str) -> Iterator[_Sentence]:
    for start, end in split_sentences(text):
        written = text[start:end]
        tokens, spans = _tokenise(written)
        yield _Sentence(field, start, end, written, tokens, spans, IMAGING.search(written) is not None)


def _tokenise(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a token for each span of time, and these spans in the text's own words."""
    spans: list[str] = []

    def take(match: re.Match[str]) -> str:
        spans.append(match[0])
        return f"{_MARK}{len(spans) - 1}{_MARK}"

    return _SPANS.sub(take, text), tuple(spans)


def _judge(sentence: _Sentence, *, imaged_before: int, after: str) -> tuple[TimelineRule | None, str]:
    """Which rule separates an examination of this sentence from another one, and the interval named."""
    text = sentence.text
    if _LOST.search(text):
        return None, ""
    interval = _interval_of(sentence)
    changed = bool(_CHANGE.search(text) or (_CHANGE.search(after) and not IMAGING.search(after)))
    if _COMPARISON.search(text) and not _NOT_COMPARED.search(text):
        return "comparison", interval
    if not sentence.has_imaging:
        return None, ""
    if _FOLLOW_UP.search(text) and (imaged_before or changed) and not _is_only_planned(text, changed):
        return "follow-up", interval
    if imaged_before and _TREATED.search(text):
        return "after treatment", interval
    if imaged_before and _is_repeated(text):
        return "repeated", interval
    if _is_set_apart(text, imaged_before=imaged_before, changed=changed):
        return "interval", interval
    return None, ""


def _is_only_planned(text: str, changed: bool) -> bool:
    return bool(_PLANNED.search(text)) and not changed


def _is_repeated(text: str) -> bool:
    found = _REPEATED.search(text)
    return found is not None and not re.search(r"\b(?:lesion|mass|nodule|diagnosis|finding)\b", found[0], re.IGNORECASE)


def _is_set_apart(text: str, *, imaged_before: int, changed: bool) -> bool:
    """Whether an interval of the sentence belongs to an examination, and there is another one."""
    for match in _LATER.finditer(text):
        between = _up_to_imaging(text, match.end())
        if between is None and not _follows_imaging(text, match.start()):
            continue
        is_since_an_event = match["post"] is not None or _CLINICAL.search(between or "") is not None
        if imaged_before and (not is_since_an_event or changed):
            return True
    for match in _EARLIER.finditer(text):
        if _follows_imaging(text, match.start()):
            return True
        between = _up_to_imaging(text, match.end())
        is_opening = match.start() < 12 or text[: match.start()].rstrip().endswith(",")
        if between is not None and is_opening and not _CLINICAL.search(between):
            return True
    return False


def _follows_imaging(text: str, place: int) -> bool:
    """Whether an examination is a few words before, with nothing clinical in between."""
    last = [one.end() for one in IMAGING.finditer(text[:place])]
    between = text[last[-1] : place] if last else ""
    return bool(last) and len(between.split()) <= _NEAR_WORDS and not _CLINICAL.search(between)


def _up_to_imaging(text: str, start: int) -> str | None:
    """The words from here to the next examination, None where there is none in the sentence."""
    found = IMAGING.search(text, start)
    return None if found is None else text[start : found.start()]


def _interval_of(sentence: _Sentence) -> str:
    for pattern in (_LATER, _EARLIER):
        if found := pattern.search(sentence.text):
            token = next(value for value in found.groupdict().values() if value)
            return sentence.spans[int(token.strip(_MARK))]
    return ""


def _aged(sentences: list[_Sentence]) -> list[TimedEvent]:
    """Time points given as an age, of a pregnancy or a child: the second and later ones, if one has an examination."""
    if not any(sentence.has_imaging and _AGE.search(sentence.written) for sentence in sentences):
        return []
    told: dict[tuple[str, str], _Sentence] = {}
    for sentence in sentences:
        for match in _AGE.finditer(sentence.written):
            if sentence.has_imaging or _CHANGE.search(sentence.text) or told:
                told.setdefault((match["when"], match["unit"].lower().rstrip("s")), sentence)
    return [TimedEvent(one.field, one.start, one.end, "dates", "") for one in list(told.values())[1:]]


def _dated(sentences: list[_Sentence]) -> TimedEvent | None:
    """Examinations in two different years, or next to two different dates of one kind."""
    imaged = [one for one in sentences if one.has_imaging]
    years = {("year", match[1]): one for one in imaged for match in _YEAR.finditer(one.written)}
    for kind in ("year", "bracket", "date", "count"):
        found = years if kind == "year" else {key: one for one in imaged for key in _dates_of(one) if key[0] == kind}
        if len(found) >= 2:
            last = found[max(found)]
            return TimedEvent(last.field, last.start, last.end, "dates", "")
    return None


def _dates_of(sentence: _Sentence) -> Iterator[tuple[str, str]]:
    """The dates given next to an examination, by kind, in a form that can be compared."""
    text = sentence.written
    for match in _DATE.finditer(text):
        if _follows_imaging(text, match.start()) or _precedes_imaging(text, match.end()):
            year = (match["year"] or "")[-2:]
            date = (match["iso"] and match["iso"][2:]) or f"{year}-{match['month'] or '':0>2}-{match['day'] or '':0>2}"
            kinds = {"bracket": match["bracket"], "count": match["count"] and match["count"].zfill(3), "date": date}
            yield next((kind, value) for kind, value in kinds.items() if value)


def _precedes_imaging(text: str, place: int) -> bool:
    """Whether an examination is a few words behind, with nothing clinical in between."""
    between = _up_to_imaging(text, place)
    return between is not None and len(between.split()) <= _NEAR_WORDS and not _CLINICAL.search(between)


_MOST_EVENTS = 9


class QuotedEvent(Struct, frozen=True, forbid_unknown_fields=True):
    """An imaging event: the words that mention it, and when it was."""

    quote: str
    when: str


class TimelineForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """The imaging events that a model finds, one for each time, and the interval in the text's words."""

    events: list[QuotedEvent]
    interval: str


class TimelineStage(Stage[ModelSettings]):
    """Texts in, times out."""

    name = "timeline"
    looks_at = ("history", "findings", "captions")

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """What the rules find; where they find anything, what the model says about it."""
        if draft.case.reference.is_longitudinal:
            return pass_case(draft, reason="had-label", by="the source")
        texts = _texts(draft)
        timeline = read_timeline(texts)
        quotes = _quotes(texts, timeline)
        if not timeline.is_longitudinal or ask is None:
            rule = ", ".join(dict.fromkeys(event.rule for event in timeline.events)) or "no second imaging event"
            return _result(draft, timeline.timepoints, timeline.interval_text, quotes, by=f"rule {rule}")
        return await _confirm(draft, texts, timeline, ask, rulings)

    def not_covered(self) -> tuple[str, ...]:
        """Without a model, time points are found by rules alone."""
        if self.settings.has_model:
            return ()
        return ("timelines that need reading: rules decided, which miss some and report some falsely (docs/curate.md)",)


async def _confirm(
    draft: Draft, texts: dict[str, str], timeline: Timeline, ask: StageModel, rulings: CaseRulings
) -> StageResult:
    told = [{"quote": quote.text, "when": ""} for quote in _quotes(texts, timeline)]
    prompt = curate_prompt(
        "timeline",
        draft.id,
        data={"texts": list(texts.values())},
        form={"events": list_of(object_of(quote=TEXT, when=TEXT)), "interval": TEXT},
        by_rules={"events": [*told, *told[:1]][: max(2, len(told))], "interval": timeline.interval_text},
    )
    reply = await ask(prompt, TimelineForm, draft.id)
    events = reply.events[:_MOST_EVENTS]
    found = [quote for event in events if (quote := _find(draft, texts, event.quote)) is not None]
    if len(found) < len(events):
        raise Unanswered("unparsed", "a quote does not occur verbatim in the texts")
    count = max(1, len(found))
    is_quoted = bool(reply.interval) and any(reply.interval in text for text in texts.values())
    interval = reply.interval if is_quoted else timeline.interval_text
    if count == 1 and found:
        detail = "the rules found a second imaging event, the model only one"
        question = hold_case("one-event", by=ask.by, detail=detail, proposal="1", evidence=found)
        count = rulings.value_of(question, _read_count)
    return _result(draft, count, interval, found, by=ask.by)


def _read_count(value: str) -> int:
    """The number of time points that a person counts."""
    if value not in map(str, range(1, _MOST_EVENTS + 1)):
        problem = f"{value!r} is not a number of time points"
        raise DataError(problem, remedy=f"write a whole number from 1 to {_MOST_EVENTS}")
    return int(value)


def _texts(draft: Draft) -> dict[str, str]:
    """The texts by field, in reading order: history, findings, captions."""
    reference = draft.case.reference
    captions = {
        f"image_{image.slot:02d}_caption": withheld.caption
        for image, withheld in zip(draft.case.question.images, reference.images, strict=True)
    }
    found = {HISTORY: draft.case.question.history, FINDINGS: reference.findings} | captions
    return {field: text for field, text in found.items() if text.strip()}


def _quotes(texts: dict[str, str], timeline: Timeline) -> list[Quote]:
    return [
        Quote(event.field, event.start, event.end, texts[event.field][event.start : event.end])
        for event in timeline.events
    ]


def _find(draft: Draft, texts: dict[str, str], words: str) -> Quote | None:
    return next((quote for field in texts if (quote := find_quote(draft, field, words)) is not None), None)


def _result(draft: Draft, count: int, interval: str, quotes: list[Quote], *, by: str) -> StageResult:
    reason = "several-times" if count > 1 else "one-time"
    return pass_case(_timed(draft, count, interval or "unknown"), reason=reason, by=by, evidence=quotes)


def _timed(draft: Draft, count: int, interval: str) -> Draft:
    several = count > 1
    return draft.with_reference(
        is_longitudinal=several, timepoint_count=max(1, count), interval_text=interval if several else ""
    )


STAGE = TimelineStage
