"""The page of one run: its accuracy, its slices, and its cases to filter, search and open."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from medthink.cases.slices import SLICINGS, group_by_slice, slice_cases, sort_slices
from medthink.core.numbers import as_percent
from medthink.runs.run import IndexRow
from medthink.scoring.score import score_slices
from medthink.scoring.scores import CaseScore
from medthink.web.app.query import Query, begin_page
from medthink.web.app.rendering import NONE, STATE_WORDS, Interval, place_rate, tell_money, tell_time
from medthink.web.runs.accuracy import RunAccuracy
from medthink.web.runs.index import IndexedRun
from medthink.web.runs.runs_page import RunLine, make_line, tell_cases
from medthink.web.runs.verdicts import CaseVerdicts

PER_PAGE = 200
_WAITING = "waiting"
_SLICES = ("modality", "images per case", "longitudinal", "ICD chapter", "length rank of the right option")


# The flip of a case, by whether each of two runs is right.
_FLIPS: dict[tuple[bool | None, bool | None], str] = {(True, False): "won", (False, True): "lost"}


class CasesQuery(Query, frozen=True, kw_only=True):
    """Filters and sort order of a run's cases; `against` names another run to compare with."""

    result: str = ""
    state: str = ""
    slice: str = ""
    against: str = ""
    flip: str = ""
    judged: str = ""
    page: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether every case is listed, in its own order."""
        return self == CasesQuery(against=self.against, page=self.page)


class CaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """One prediction in the list; `result` is "right", "wrong" or "" if there is no answer, or nothing to compare with.

    `flip` counts a case without an answer as wrong, as in the score.
    """

    case: int
    sample: int
    state: str
    state_word: str
    letter: str
    answer: str
    result: str
    gold: str
    gold_text: str
    other_letter: str
    other_result: str
    flip: str
    contradicted: int
    units: int
    images: int
    modalities: str
    is_longitudinal: bool
    chapter: str
    tokens: int | None
    cost_usd: float | None
    latency_s: float | None
    detail: str


class SlicePosition(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy in one slice, and the link that shows its cases."""

    value: str
    n: int
    is_small: bool
    rate: Interval
    key: str


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """One run with the cases matching the query."""

    line: RunLine
    cases_of: str
    query: CasesQuery
    lines: tuple[CaseLine, ...]
    shown: int
    found: int
    previous: str
    next: str
    states: tuple[tuple[str, str, int], ...]
    slices: tuple[tuple[str, tuple[SlicePosition, ...]], ...]
    slice_choices: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    others: tuple[tuple[str, str], ...]
    against: str
    is_judged: bool
    is_smoke_test: bool
    exams: tuple[tuple[str, str, bool], ...]
    has_letters: bool
    samples: int
    facts: tuple[tuple[str, str], ...]
    command: str


def make_run_page(
    run: IndexedRun,
    standing: RunAccuracy | None,
    beside: Sequence[IndexedRun],
    verdicts: CaseVerdicts,
    query: CasesQuery,
) -> RunPage:
    """The run, with the cases matching the query."""
    other = next((one for one in beside if one.slug == query.against), None)
    rows = list_rows(run)
    counted = Counter(row.state for row in rows)
    start = begin_page(query.page, len(rows), PER_PAGE)
    if query.is_plain:
        shown, lines = len(rows), make_case_lines(run, rows[start : start + PER_PAGE], other, verdicts)
    else:
        chosen = choose_lines(make_case_lines(run, rows, other, verdicts), run, query)
        start = begin_page(query.page, len(chosen), PER_PAGE)
        shown, lines = len(chosen), chosen[start : start + PER_PAGE]
    return RunPage(
        line=make_line(run, standing),
        cases_of=tell_cases(run),
        query=query,
        lines=tuple(lines),
        shown=shown,
        found=len(rows),
        previous=query.encode(page=str(start // PER_PAGE)) if start else "",
        next=query.encode(page=str(start // PER_PAGE + 2)) if start + PER_PAGE < shown else "",
        states=tuple((state, STATE_WORDS.get(state, state), count) for state, count in counted.most_common()),
        slices=tuple(_mark_slices(run)),
        slice_choices=_slice_choices(run),
        others=tuple((one.slug, one.name) for one in beside),
        against=other.name if other else "",
        is_judged=bool(verdicts),
        is_smoke_test=bool(verdicts) and all(seat.is_smoke_test for seats in verdicts.values() for seat in seats),
        exams=_exams(verdicts),
        has_letters=run.has_letters and run.bench is not None,
        samples=run.manifest.condition.samples,
        facts=tuple(_facts(run)),
        command=f"medthink show {run.path}",
    )


def _exams(verdicts: CaseVerdicts) -> tuple[tuple[str, str, bool], ...]:
    """The exam result of every judge and kind of judging, and whether it is below the floor."""
    seats = [seat for listed in verdicts.values() for seat in listed]
    return tuple(dict.fromkeys((f"{seat.seat}, {seat.what}", seat.exam, seat.is_below_floor) for seat in seats))


def list_rows(run: IndexedRun) -> list[IndexRow]:
    """Every prediction of a run, and a row for every case that has none yet."""
    done = {row.case for row in run.rows}
    waiting = (IndexRow(case=number, sample=0, state=_WAITING) for number in run.selected if number not in done)
    return [*run.rows, *waiting]


def make_case_lines(
    run: IndexedRun, rows: Iterable[IndexRow], other: IndexedRun | None, verdicts: CaseVerdicts
) -> list[CaseLine]:
    """The lines of these rows; the other run's answers stand beside those that have one."""
    theirs = {(row.case, row.sample): row for row in other.rows} if other else {}
    return [
        _line(run, row, None, None, {})
        if row.state == _WAITING
        else _line(run, row, other, theirs.get((row.case, row.sample)), verdicts)
        for row in rows
    ]


def choose_lines(every: Iterable[CaseLine], run: IndexedRun, query: CasesQuery) -> list[CaseLine]:
    """The lines matching the query, in its order."""
    by, _, value = query.slice.partition(":")
    members = {number for number, case in run.selected.items() if by in SLICINGS and value in SLICINGS[by](case)}
    found = [line for line in every if _fits(line, query) and (not by or line.case in members)]
    key = _SORTS.get(query.sort)
    return sorted(found, key=key, reverse=bool(query.down)) if key else found


_SORTS: dict[str, Callable[[CaseLine], float]] = {
    "case": lambda line: line.case,
    "judged": lambda line: line.contradicted,
    "images": lambda line: line.images,
    "tokens": lambda line: line.tokens or 0,
    "cost": lambda line: line.cost_usd or 0.0,
    "time": lambda line: line.latency_s or 0.0,
}


def _fits(line: CaseLine, query: CasesQuery) -> bool:
    text = f"{line.case} {line.answer} {line.gold_text} {line.modalities} {line.chapter} {line.detail}".casefold()
    return (
        query.result in ("", line.result)
        and query.state in ("", line.state)
        and (not query.flip or line.flip == query.flip or (query.flip == "any" and bool(line.flip)))
        and (not query.judged or line.contradicted > 0)
        and all(word in text for word in query.words)
    )


def _line(
    run: IndexedRun, row: IndexRow, other: IndexedRun | None, theirs: IndexRow | None, verdicts: CaseVerdicts
) -> CaseLine:
    case = run.bench.cases.get(row.case) if run.bench else None
    options = case.question.options if case else {}
    gold = case.reference.answer if case and run.has_letters else ""
    result, other_result = _result(run, row), _result(other, theirs) if other and theirs else ""
    judged = [seat for seat in verdicts.get((row.case, row.sample), ()) if seat.verdicts]
    return CaseLine(
        case=row.case,
        sample=row.sample,
        state=row.state,
        state_word=STATE_WORDS.get(row.state, row.state),
        letter=row.prediction or "",
        answer=options.get(row.prediction or "", row.answer or ""),
        result=result,
        gold=gold,
        gold_text=options.get(gold, ""),
        other_letter=(theirs.prediction or NONE) if theirs else "",
        other_result=other_result,
        flip=_FLIPS.get((run.is_right(row), other.is_right(theirs)), "") if other and theirs else "",
        contradicted=max((seat.bad for seat in judged), default=0),
        units=max((len(seat.verdicts) for seat in judged), default=0),
        images=len(case.question.images) if case else 0,
        modalities=", ".join(_short_modality(name) for name in case.modalities) if case else "",
        is_longitudinal=bool(case and case.reference.is_longitudinal),
        chapter=case.reference.icd_chapter if case else "",
        tokens=row.tokens.input + row.tokens.output if row.tokens else None,
        cost_usd=row.cost_usd,
        latency_s=row.latency_s,
        detail=row.detail,
    )


def _result(run: IndexedRun, row: IndexRow) -> str:
    is_right = run.is_right(row) if row.state == "ok" else None
    return "" if is_right is None else "right" if is_right else "wrong"


def _short_modality(name: str) -> str:
    """`Nuclear medicine & Molecular imaging` as `Nuclear medicine`: lists are narrow."""
    return name.split(" & ")[0].split(" / ")[0]


def _mark_slices(run: IndexedRun) -> Iterable[tuple[str, tuple[SlicePosition, ...]]]:
    if not run.rights:
        return
    found = score_slices(run.selected, tuple(_case_score(run, number) for number in sorted(run.rights)))
    for by in _SLICES:
        marks = tuple(
            SlicePosition(value=one.value, n=one.n, is_small=one.is_small, rate=rate, key=f"{by}:{one.value}")
            for one in found
            if one.by == by and (rate := place_rate(one.accuracy)) is not None
        )
        if len(marks) > 1:
            yield by, marks


def _case_score(run: IndexedRun, number: int) -> CaseScore:
    letters = tuple(row.prediction if row.state == "ok" else None for row in run.rows_of(number))
    gold = run.selected[number].reference.answer
    return CaseScore(case=number, right=run.rights[number], states=(), letters=letters, gold=gold)


def _slice_choices(run: IndexedRun) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Every slice that a case of the run is in, by kind, with its number of cases."""
    members = sort_slices(
        group_by_slice(((number, number) for number in run.selected), slice_cases(run.selected.values()))
    )
    choices: dict[str, list[tuple[str, str]]] = {by: [] for by in _SLICES}
    for (by, value), cases in members.items():
        if by in choices:
            choices[by].append((f"{by}:{value}", f"{value} ({len(cases)})"))
    return tuple((by, tuple(found)) for by, found in choices.items() if len(found) > 1)


def _facts(run: IndexedRun) -> Iterable[tuple[str, str]]:
    manifest, progress = run.manifest, run.manifest.progress
    yield "model", manifest.model
    yield "task", manifest.task
    yield "condition", manifest.condition_label
    if progress and progress.reported_models:
        yield "model as the provider names it", ", ".join(progress.reported_models)
    yield "benchmark", f"{manifest.benchmark_absolute or manifest.benchmark}, fingerprint {manifest.fingerprint[:12]}"
    yield "prompts", ", ".join(f"{kind} {version[:8]}" for kind, version in manifest.prompts.items()) or NONE
    yield "began", manifest.created_at
    if progress and progress.last_call_at:
        yield "last call", progress.last_call_at
    if progress:
        calls = ", ".join(f"{count:,} {state}" for state, count in progress.calls.items())
        yield "calls", f"{calls or NONE}; {progress.attempts:,} attempts sent"
    if progress and progress.image_doubts:
        share = as_percent(progress.image_doubts / progress.image_replies)
        yield "images", f"{share} of the replies count too few tokens to have seen the images"
    yield "cost", tell_money(run.cost_usd, is_least=run.is_least_cost)
    times = [row.latency_s for row in run.rows]
    yield "time in calls", tell_time(None if None in times else sum(time for time in times if time))
    yield "made by", f"medthink {manifest.package}"
    yield "folder", str(run.path)
