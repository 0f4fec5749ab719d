"""Discussion: the teaching text without the passages about diagnoses that are not options.

Rules remove the sentences that name one. A model says which other sentences are about one without naming it; it removes
nothing that names the right diagnosis. Then the result is verified: no dropped name is left, and what is kept is
unchanged.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from medthink.cases.sections import split_discussion
from medthink.core.errors import DataError
from medthink.core.numbers import as_percent
from medthink.curate.ask import StageModel, curate_prompt
from medthink.curate.decision import Quote, StageResult, hold_case, pass_case
from medthink.curate.draft import DISCUSSION, Draft
from medthink.curate.mentions import SpelledText, TargetName, strong_mentions
from medthink.curate.names import core_words, head_of, is_parent, name_key, short_form, split_differential
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import DiscussionSettings
from medthink.curate.stage import Stage
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import ReplyForm, list_of
from medthink.workflow.sentences import Span, split_sentences

# A line with nothing left but a list marker, heading marks or a colon.
_MARKER = re.compile(r"(?:\(?\d{1,2}[.)]|[-*•·–—])\s+")
_MARKER_AT_END = re.compile(rf"(?:^|\s){_MARKER.pattern}$")
_BARE_LINE = re.compile(r"[\s#>*_•·–—-]*(?:\(?\d{1,2}[.)])?[\s*_:]*")


_PRUNE, _KEEP = "prune", "keep"


class DroppedNames(NamedTuple):
    """Diagnoses of the source's list that are not options, and those too close to an option to search for."""

    sought: tuple[str, ...]
    unsearchable: tuple[str, ...]


class NumberedSentence(NamedTuple):
    """A sentence of a discussion, with the dropped diagnoses and options that it names."""

    span: Span
    text: str
    dropped: tuple[str, ...]
    options: tuple[str, ...]


def dropped_names(listed: Sequence[str], options: Sequence[str]) -> DroppedNames:
    """The names of a list that are no longer options; a broader term than an option cannot be distinguished from it."""
    forms = {name_key(form) for option in options for form in (option, head_of(option), short_form(option))}
    gone = [
        name for name in listed if not {name_key(name), name_key(head_of(name)), name_key(short_form(name))} & forms
    ]
    close = [name for name in gone if any(_is_close(name, option) for option in options)]
    return DroppedNames(tuple(name for name in gone if name not in close), tuple(close))


def _is_close(name: str, option: str) -> bool:
    own, other = set(core_words(name)), set(core_words(option))
    return is_parent(name, option) or own <= other


def read_sentences(
    text: str, dropped: Sequence[str], options: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> list[NumberedSentence]:
    """The sentences of a discussion with what each names."""
    spans = split_sentences(text)
    found = [set[str]() for _ in spans]
    for name, place in _mentions(text, spans, dropped, options, aliases):
        found[place].add(name)
    return [
        NumberedSentence(
            span,
            text[span.start : span.end],
            tuple(name for name in dropped if name in names),
            tuple(name for name in options if name in names),
        )
        for span, names in zip(spans, found, strict=True)
    ]


def _mentions(
    text: str,
    spans: Sequence[Span],
    dropped: Sequence[str],
    options: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
) -> Iterator[tuple[str, int]]:
    """Every name with the sentence it occurs in."""
    spelled = SpelledText(text)
    for name in (*dropped, *options):
        others = [other for other in (*dropped, *options) if other != name]
        sought = TargetName.of(name, aliases=aliases.get(name, ()), others=others)
        for mention in strong_mentions(spelled, sought):
            yield from (
                (name, at) for at, span in enumerate(spans) if span.start < mention.end and mention.start < span.end
            )


def without_sentences(text: str, spans: Sequence[Span], removed: Collection[int]) -> str:
    """The text without these sentences, without the empty lines that remain, and without headings that have no text."""
    if not removed:
        return text
    lines: list[str | None] = []
    for start, line in _lines(text):
        gone = [spans[number] for number in removed if start <= spans[number].start < start + len(line)]
        rest = _cut(line, [(span.start - start, span.end - start) for span in gone])
        lines.append(None if gone and _BARE_LINE.fullmatch(rest) else rest)
    kept = [line for at, line in enumerate(lines) if line is not None and not _heads_nothing(lines, at)]
    return "".join(kept).rstrip()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line
        start += len(line)


def _cut(line: str, places: list[tuple[int, int]]) -> str:
    """The line without these spans; the gap after each goes too, and for the last one the gap before."""
    for start, end in sorted(places, reverse=True):
        before, after = line[:start], line[end:]
        if not after.strip():
            line = _MARKER_AT_END.sub("", before).rstrip() + after
        else:
            after = after.lstrip(" \t")
            # The next point of a list has its own marker.
            line = (_MARKER_AT_END.sub(" ", before) if _MARKER.match(after) else before) + after
    return line


def _heads_nothing(lines: Sequence[str | None], at: int) -> bool:
    """Whether a line is a heading, and every line under it, to the next empty one, is gone."""
    line = lines[at]
    if line is None or not is_heading(line):
        return False
    under = list(takewhile(lambda one: one is None or one.strip(), lines[at + 1 :]))
    return bool(under) and all(one is None for one in under)


def is_heading(line: str) -> bool:
    """Whether a line is a heading: it ends in a colon, or is a few words that are not a sentence."""
    bare = line.strip().strip("#*_ ")
    return bool(bare) and (bare.endswith(":") or (len(bare.split()) <= 5 and not bare.endswith((".", "!", "?"))))


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
    """Removes passages about dropped diagnoses."""

    name = "discussion"
    looks_at = ("diagnosis", "list", "options", "discussion")

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """Remove sentences that name a dropped diagnosis and, with a model, those that are about one."""
        read = _read(draft)
        if not read.text.strip() or not read.names.sought:
            reason = "no-discussion" if not read.text.strip() else "nothing-dropped"
            return pass_case(_marked(draft, read.text, 0), reason=reason, by="rule", detail=_close(read.names))
        removed = read.named
        if ask is not None:
            removed = removed | await _ask_for_more(draft, read, ask)
        return self._settle(draft, read, removed, rulings, by=ask.by if ask else "rule names a dropped diagnosis")

    def _settle(
        self, draft: Draft, read: ReadDiscussion, removed: set[int], rulings: CaseRulings, *, by: str
    ) -> StageResult:
        gone = [read.sentences[number] for number in sorted(removed)]
        quotes = [Quote(DISCUSSION, one.span.start, one.span.end, one.text) for one in gone]
        share = len(removed) / max(1, len(read.sentences))
        pruned = _prune(read, removed)
        detail = _told(read, removed)
        if share > self.settings.max_removed:
            detail = f"{as_percent(share, 0)} of the sentences would be removed; {detail}"
            question = hold_case("much-removed", by=by, detail=detail, proposal=_PRUNE, evidence=quotes)
            if rulings.value_of(question, _read_choice) == _KEEP:
                return pass_case(draft, reason="kept", by="person")
        left = _names_left(draft, read, pruned)
        if left or _is_touched(read, removed, pruned):
            detail = f"still named: {', '.join(left)}" if left else "a sentence that should stay would change"
            question = hold_case("not-verified", by=by, detail=detail, proposal=_PRUNE, evidence=quotes)
            if rulings.value_of(question, _read_choice) == _KEEP:
                return pass_case(draft, reason="kept", by="person")
        made = _marked(draft.with_reference(discussion=pruned), pruned, len(removed))
        return pass_case(made, reason="pruned" if removed else "names-none", by=by, detail=detail, evidence=quotes)

    def not_covered(self) -> tuple[str, ...]:
        """Passages without a name, if no model is asked."""
        if self.settings.has_model:
            return ()
        return ("passages of discussions about dropped diagnoses that do not name them: no model was asked",)


def _read_choice(value: str) -> str:
    """Whether to keep the text or to prune it, which is what nothing agrees with."""
    choice = value.lower() or _PRUNE
    if choice not in (_KEEP, _PRUNE):
        raise DataError(f"{value!r} is neither {_PRUNE} nor {_KEEP}", remedy=f"write {_PRUNE} or {_KEEP}")
    return choice


async def _ask_for_more(draft: Draft, read: ReadDiscussion, ask: StageModel) -> set[int]:
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
