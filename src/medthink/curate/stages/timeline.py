"""Timeline: whether the case was imaged at more than one time, with the sentences that say so.

Rules look for two imaging events separated in time. Where they find any, a model (if there is one) reads the texts and
quotes the events; its quotes must occur verbatim in the texts. The order of images is not evidence.
"""

from msgspec import Struct

from medthink.curate.asking import StageAsk, curate_prompt
from medthink.curate.decision import Quote, StageResult, find_quote, keep, leave_open
from medthink.curate.draft import FINDINGS, HISTORY, Draft
from medthink.curate.stage import ModelSettings, Stage
from medthink.curate.timeline import Timeline, read_timeline
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import TEXT, ReplyForm, list_of, object_of

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
    settings_type = ModelSettings

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:
        """What the rules find; where they find anything, what the model says about it."""
        if draft.case.reference.is_longitudinal:
            return keep(draft, reason="had-label", by="the source")
        texts = _texts(draft)
        timeline = read_timeline(texts)
        quotes = _quotes(texts, timeline)
        if not timeline.is_longitudinal or ask is None:
            rule = ", ".join(dict.fromkeys(event.rule for event in timeline.events)) or "no second imaging event"
            return _result(draft, timeline.timepoints, timeline.interval_text, quotes, by=f"rule {rule}")
        return await _confirm(draft, texts, timeline, ask)

    def agree(self, draft: Draft, ruling: str) -> Draft:
        """The draft with the number of time points a person counts; 1, or nothing, is a single one."""
        count = int(ruling) if ruling.strip().isdigit() else 1
        interval = read_timeline(_texts(draft)).interval_text or "unknown"
        return _timed(draft, count, interval)

    def not_covered(self) -> tuple[str, ...]:
        """Without a model, time points are found by rules alone."""
        if self.settings.has_model:
            return ()
        return ("timelines that need reading: rules decided, which miss some and report some falsely (docs/curate.md)",)


async def _confirm(draft: Draft, texts: dict[str, str], timeline: Timeline, ask: StageAsk) -> StageResult:
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
    interval = reply.interval if any(reply.interval in text for text in texts.values()) else timeline.interval_text
    if count == 1 and found:
        detail = "the rules found a second imaging event, the model only one"
        return leave_open("one-event", by=ask.by, detail=detail, proposal="1", evidence=found)
    return _result(draft, count, interval, found, by=ask.by)


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
    return keep(_timed(draft, count, interval or "unknown"), reason=reason, by=by, evidence=quotes)


def _timed(draft: Draft, count: int, interval: str) -> Draft:
    several = count > 1
    return draft.with_reference(
        is_longitudinal=several, timepoint_count=max(1, count), interval_text=interval if several else ""
    )


STAGE = TimelineStage
