"""Discussion: the teaching text without the passages about diagnoses that are not options.

Rules remove the sentences that name one. A model says which other sentences are about one without naming it; it removes
nothing that names the right diagnosis. Then the result is verified: no dropped name is left, and what is kept is
unchanged.
"""

from typing import Annotated, NamedTuple

from msgspec import Meta

from medthink.cases.sections import split_discussion
from medthink.core.numbers import as_percent
from medthink.curate.asking import StageAsk, curate_prompt
from medthink.curate.decision import Quote, StageResult, keep, leave_open
from medthink.curate.draft import DISCUSSION, Draft
from medthink.curate.pruning import (
    DroppedNames,
    NumberedSentence,
    dropped_names,
    is_heading,
    read_sentences,
    without_sentences,
)
from medthink.curate.splitting import split_differential
from medthink.curate.stage import ModelSettings, Stage
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import ReplyForm, list_of


class DiscussionSettings(ModelSettings, frozen=True, kw_only=True):
    """How much may be removed before a person must check."""

    most_removed: Annotated[
        float,
        Meta(description="Maximum share of a discussion's sentences that may be removed automatically.", ge=0, le=1),
    ] = 0.5


class PruningForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """The numbers of the sentences that are about a dropped diagnosis."""

    remove: list[int]


class ReadDiscussion(NamedTuple):
    """A discussion, its sentences, and which names to look for."""

    text: str
    sentences: list[NumberedSentence]
    names: DroppedNames

    @property
    def named(self) -> set[int]:
        """The sentences that name a dropped diagnosis."""
        return {number for number, sentence in enumerate(self.sentences) if sentence.dropped}


class DiscussionStage(Stage[DiscussionSettings]):
    """Texts in, shorter texts out."""

    name = "discussion"
    settings_type = DiscussionSettings

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:
        """Remove what names a dropped diagnosis, and with a model what is about one."""
        read = _read(draft)
        if not read.text.strip() or not read.names.sought:
            reason = "no-discussion" if not read.text.strip() else "nothing-dropped"
            return keep(_marked(draft, read.text, 0), reason=reason, by="rule", detail=_close(read.names))
        removed = read.named
        if ask is not None:
            removed = removed | await _ask_for_more(draft, read, ask)
        return self._settle(draft, read, removed, by=ask.by if ask else "rule names a dropped diagnosis")

    def _settle(self, draft: Draft, read: ReadDiscussion, removed: set[int], *, by: str) -> StageResult:
        gone = [read.sentences[number] for number in sorted(removed)]
        quotes = [Quote(DISCUSSION, one.span.start, one.span.end, one.text) for one in gone]
        share = len(removed) / max(1, len(read.sentences))
        pruned = _prune(read, removed)
        detail = _told(read, removed)
        if share > self.settings.most_removed:
            detail = f"{as_percent(share, 0)} of the sentences would be removed; {detail}"
            return leave_open("much-removed", by=by, detail=detail, proposal="prune", evidence=quotes)
        left = _names_left(draft, read, pruned)
        if left or _is_touched(read, removed, pruned):
            detail = f"still named: {', '.join(left)}" if left else "a sentence that should stay would change"
            return leave_open("not-verified", by=by, detail=detail, proposal="prune", evidence=quotes)
        made = _marked(draft.with_reference(discussion=pruned), pruned, len(removed))
        return keep(made, reason="pruned" if removed else "names-none", by=by, detail=detail, evidence=quotes)

    def agree(self, draft: Draft, ruling: str) -> Draft:
        """The text unchanged if a person says so, else without the sentences that name a dropped diagnosis."""
        if ruling.strip().lower() in ("keep", "as it is"):
            return draft
        read = _read(draft)
        pruned = _prune(read, read.named)
        return _marked(draft.with_reference(discussion=pruned), pruned, len(read.named))

    def not_covered(self) -> tuple[str, ...]:
        """Without a model, only names are searched for."""
        if self.settings.has_model:
            return ()
        return ("passages of discussions about dropped diagnoses that do not name them: no model was asked",)


async def _ask_for_more(draft: Draft, read: ReadDiscussion, ask: StageAsk) -> set[int]:
    """Sentences that are about a dropped diagnosis without naming it."""
    numbered = [{"number": number, "text": sentence.text} for number, sentence in enumerate(read.sentences)]
    prompt = curate_prompt(
        "discussion",
        draft.id,
        data={
            "dropped": list(read.names.sought),
            "options": list(draft.case.question.options.values()),
            "sentences": numbered,
            "removed": sorted(read.named),
        },
        form={"remove": list_of({"type": "integer"})},
        by_rules={"remove": []},
    )
    more = set((await ask(prompt, PruningForm, draft.id)).remove)
    if not more <= set(range(len(read.sentences))):
        raise Unanswered("unparsed", "a number in the reply does not belong to any sentence")
    # A sentence that names the right diagnosis is about it, whatever else it says.
    return {number for number in more if draft.gold not in read.sentences[number].options}


def _read(draft: Draft) -> ReadDiscussion:
    options = list(draft.case.question.options.values())
    listed = split_differential(draft.notes.differential, draft.gold) or list(draft.notes.candidates)
    names = dropped_names(listed, options or [draft.gold])
    text = draft.case.reference.discussion
    return ReadDiscussion(text, read_sentences(text, names.sought, options, draft.notes.aliases), names)


def _prune(read: ReadDiscussion, removed: set[int]) -> str:
    return without_sentences(read.text, [sentence.span for sentence in read.sentences], removed)


def _is_touched(read: ReadDiscussion, removed: set[int], pruned: str) -> bool:
    """Whether a sentence that should stay is missing from the result or out of order; headings may go."""
    at = 0
    for number, sentence in enumerate(read.sentences):
        if number not in removed and not is_heading(sentence.text):
            found = pruned.find(sentence.text, at)
            if found < 0:
                return True
            at = found + len(sentence.text)
    return False


def _names_left(draft: Draft, read: ReadDiscussion, pruned: str) -> list[str]:
    if pruned == read.text:
        again = read.sentences
    else:
        options = list(draft.case.question.options.values())
        again = read_sentences(pruned, read.names.sought, options, draft.notes.aliases)
    return list(dict.fromkeys(name for sentence in again for name in sentence.dropped))


def _marked(draft: Draft, text: str, removed: int) -> Draft:
    sections = list(split_discussion(text).sections)
    return draft.with_mark("discussion", {"sections": sections, "removed": removed}) if text.strip() else draft


def _told(read: ReadDiscussion, removed: set[int]) -> str:
    mixed = [number for number in removed if read.sentences[number].options]
    parts = [f"{len(removed)} of {len(read.sentences)} sentences removed"]
    if mixed:
        parts.append(f"{len(mixed)} of them named an option, too")
    return "; ".join([*parts, *([_close(read.names)] if read.names.unsearchable else [])])


def _close(names: DroppedNames) -> str:
    return (
        f"not searched for, because an option says the same: {'; '.join(names.unsearchable)}"
        if names.unsearchable
        else ""
    )


STAGE = DiscussionStage
