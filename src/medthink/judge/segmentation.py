"""Segmentation of a run's texts into units, once for all judges and readers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from medthink.cases.case import Case
from medthink.core.errors import UsageError
from medthink.judge.asking import Judge
from medthink.judge.decisive import (
    DecisiveFinding,
    DecisiveForm,
    DecisiveList,
    check_decisive,
    digest_reference,
    list_by_rule,
    make_list,
)
from medthink.judge.judgement import Unjudged
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import decisive_prompt, split_prompt
from medthink.judge.units import SENTENCES, Unit, UnitKey, UnitSet, UnitSource, split_source, unit_set
from medthink.metrics.findings.lexicon import Token, content_words, name_class
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.engine import run_cases
from medthink.workflow.clauses import may_cut
from medthink.workflow.forms import RULES, ReplyFault, ReplyForm, read_form
from medthink.workflow.sentences import Span, split_sentences


class DecisiveListMaker:
    """Makes the missing lists; the list of an unchanged case is kept, edited or not."""

    def __init__(self, hearing: Judge, kept: Mapping[int, DecisiveList]) -> None:
        self._hearing = hearing
        self._kept = kept

    async def make(self, cases: Iterable[Case]) -> tuple[dict[int, DecisiveList | Unjudged], BudgetReached | None]:
        """The list of every case, or the reason why there is none yet."""
        lists: dict[int, DecisiveList | Unjudged] = {}

        async def handle(case: Case) -> None:
            lists[case.id] = await self._list(case)

        stop = await run_cases(cases, handle, workers=self._hearing.desk.answerer.concurrency)
        return lists, stop

    async def _list(self, case: Case) -> DecisiveList | Unjudged:
        kept = self._kept.get(case.id)
        if kept is not None and kept.reference == digest_reference(case):
            return kept
        judge = self._hearing.desk.answerer.spec
        if judge == RULES:
            return list_by_rule(case)
        prompt = decisive_prompt(case)

        def read(text: str) -> tuple[DecisiveFinding, ...] | ReplyFault:
            form = read_form(text, DecisiveForm, prompt.call)
            return form if isinstance(form, ReplyFault) else check_decisive(form, case)

        heard = await self._hearing.hear(prompt, read, case_id=case.id, repeat=0)
        if not isinstance(heard.result, Unjudged):
            return make_list(case, heard.result, made_by=judge)
        if heard.result.kind == "failed":
            # The call may succeed next time; a list made another way now would be permanent.
            return Unjudged("unsplit", heard.result.detail)
        return list_by_rule(case)


_SENTENCE_END = re.compile(r"[.!?;:]+[\"'”’)\]]*(?=\s|$)|[\r\n]+")
_COMMA = re.compile(r",[\"'”’)\]]*(?=\s)")
_CLOSERS = re.compile(r"[^\w\s(\[«“‘]*")


class SplitForm(ReplyForm, frozen=True):
    """A text segmented into steps, each in its own words."""

    steps: tuple[str, ...]


def align_steps(form: SplitForm, source: UnitSource) -> tuple[Unit, ...] | ReplyFault:
    """The steps as units of the text, or the reason why they are not a segmentation of it.

    Steps must repeat the text's content words in order, so none can drop a negation, a side, a number or a qualifier.
    A unit always shows the original text. Steps that part a negation, hedge, condition, quantifier or comparison from
    what it governs are joined again: the sentence stays whole.
    """
    fault = _check_count(form, source)
    if fault is not None:
        return fault
    ((part, text),) = source.parts.items()
    tokens = content_words(text)
    ends: list[int] = []
    for number, step in enumerate(form.steps, start=1):
        place = ends[-1] if ends else 0
        words = [token.word for token in content_words(step)]
        fault = _compare(words, tokens[place:], number)
        if fault is not None:
            return fault
        ends.append(place + len(words))
    if ends[-1] < len(tokens):
        kind = name_class(tokens[ends[-1]].word)
        return ReplyFault("wrong_form", f"the steps omit the end of the text, starting with {kind}")
    return source.cut(part, _join_scopes(text, _spans(text, tokens, ends)))


def _join_scopes(text: str, steps: Sequence[Span]) -> list[Span]:
    """The steps, those joined between which the text may not be cut."""
    sentences = split_sentences(text)
    joined: list[Span] = []
    for step in steps:
        if joined and not may_cut(text, sentences, step.start):
            joined[-1] = Span(joined[-1].start, step.end)
        else:
            joined.append(step)
    return joined


def _check_count(form: SplitForm, source: UnitSource) -> ReplyFault | None:
    if not form.steps:
        return ReplyFault("wrong_form", "there must be at least one step")
    if len(form.steps) > source.max_units:
        return ReplyFault("wrong_form", f"there were {len(form.steps)} steps; at most {source.max_units} are allowed")
    return None


def _compare(words: Sequence[str], tokens: Sequence[Token], number: int) -> ReplyFault | None:
    """The reason why the step differs from the text at this position; None if it does not."""
    if not words:
        return ReplyFault("wrong_form", f"step {number} is empty")
    for word, token in zip(words, tokens, strict=False):
        if word != token.word:
            return ReplyFault(
                "wrong_form", f"step {number} does not keep to the text: it drops or changes {_kind(word, token)}"
            )
    if len(words) > len(tokens):
        return ReplyFault("wrong_form", f"step {number} says more than the text")
    return None


def _kind(word: str, token: Token) -> str:
    kinds = [name_class(token.word), name_class(word)]
    return next((kind for kind in kinds if kind != "a word"), "a word")


def _spans(text: str, tokens: Sequence[Token], ends: Sequence[int]) -> list[Span]:
    """The pieces of the text that the steps cover, together all of it."""
    cuts = [_cut(text, tokens[end - 1].end, tokens[end].start) for end in ends[:-1]]
    bounds = [0, *cuts, len(text)]
    return [_trim(text, start, end) for start, end in pairwise(bounds)]


def _cut(text: str, start: int, end: int) -> int:
    """Where to cut between two words: after the end of a sentence, else a comma, else at the first word's end."""
    found = _SENTENCE_END.search(text, start, end) or _COMMA.search(text, start, end)
    if found:
        return found.end()
    closers = _CLOSERS.match(text, start, end)
    return closers.end() if closers else start


def _trim(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return Span(start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip())))


class Segmenter:
    """Segments texts that have no units yet; earlier units are kept, because verdicts and labels refer to them."""

    def __init__(
        self, hearings: Mapping[str, Judge], kept: Mapping[UnitKey, UnitSet], *, asked: str | None, default: str
    ) -> None:
        self._hearings = hearings
        self._kept = kept
        self._splitter = _choose(kept, asked, default)

    async def cut(
        self, sources: Iterable[UnitSource]
    ) -> tuple[dict[UnitKey, UnitSet | Unjudged], BudgetReached | None]:
        """The units of every source, in its order; a source that could not be segmented this time has none."""
        sets: dict[UnitKey, UnitSet | Unjudged] = {}

        async def handle(source: UnitSource) -> None:
            sets[source.key] = await self._cut_one(source)

        hearing = self._hearings.get(self._splitter)
        workers = hearing.desk.answerer.concurrency if hearing else 1
        stop = await run_cases(sources, handle, workers=workers)
        return dict(sorted(sets.items())), stop

    async def _cut_one(self, source: UnitSource) -> UnitSet | Unjudged:
        kept = self._kept.get(source.key)
        if kept is not None and kept.texts == source.digest():
            return kept
        if not source.is_cut_by_model or self._splitter == SENTENCES or not source.parts:
            return split_source(source)
        return await self._ask(source, self._hearing())

    async def _ask(self, source: UnitSource, hearing: Judge) -> UnitSet | Unjudged:
        prompt = split_prompt(source)

        def read(text: str) -> tuple[Unit, ...] | ReplyFault:
            form = read_form(text, SplitForm, prompt.call)
            return form if isinstance(form, ReplyFault) else align_steps(form, source)

        heard = await hearing.hear(prompt, read, case_id=source.case, repeat=0)
        if not isinstance(heard.result, Unjudged):
            return unit_set(source, heard.result, splitter=self._splitter)
        if heard.result.kind == "failed":
            # The call may succeed next time; a cut made another way now would be permanent.
            return Unjudged("unsplit", heard.result.detail)
        units = split_source(source).units
        detail = f"{heard.result.kind}: {heard.result.detail}"
        return unit_set(source, units, splitter=self._splitter, is_fallback=True, detail=detail)

    def _hearing(self) -> Judge:
        if self._splitter not in self._hearings:
            raise UsageError(
                f"the run's steps were segmented by {self._splitter}, and some texts are not segmented yet",
                remedy=f"add --segmenter {self._splitter}",
            )
        return self._hearings[self._splitter]


def _choose(kept: Mapping[UnitKey, UnitSet], asked: str | None, default: str) -> str:
    """The splitter: the one used before, else the requested one, else the first judge."""
    cut = [units for units in kept.values() if KINDS[units.what].is_cut_by_model and units.state != "absent"]
    before = {units.splitter for units in cut}
    wanted = SENTENCES if asked in (SENTENCES, RULES) else asked
    if before and wanted is not None and wanted not in before:
        raise UsageError(
            f"the run's steps were segmented by {', '.join(sorted(before))}: verdicts and labels refer to those steps",
            remedy="omit --segmenter, or judge a copy of the run",
        )
    chosen = wanted or (min(before) if before else default)
    return SENTENCES if chosen == RULES else chosen
