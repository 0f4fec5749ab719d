"""The page of all runs: progress, accuracy and cost."""

from collections.abc import Callable, Sequence

import msgspec

from medthink.cases.case import Case
from medthink.core.numbers import count_of
from medthink.web.app.query import Query
from medthink.web.app.rendering import (
    STATE_WORDS,
    Difference,
    Interval,
    place_rate,
    tell_difference,
    tell_money,
    tell_share,
)
from medthink.web.runs.accuracy import RunAccuracy
from medthink.web.runs.index import BrokenRun, IndexedRun


class RunsQuery(Query, frozen=True, kw_only=True):
    """Filters and sort order of the list of runs."""

    task: str = ""
    activity: str = ""


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """One run in the list; unknown values are None."""

    slug: str
    name: str
    model: str
    task: str
    condition: str
    activity: str
    done: int
    total: int | None
    states: tuple[tuple[str, str, int], ...]
    accuracy: Interval | None
    rival: str
    gain: Difference | None
    is_counting: bool
    cost: str
    created_at: str
    doubt: str
    stop: str = ""
    is_unanswered: bool = False


class RunGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Runs on the same cases, which may be compared in one table."""

    title: str
    lines: tuple[RunLine, ...]


class RunsPage(msgspec.Struct, frozen=True, kw_only=True):
    """All runs, in groups that may be compared."""

    query: RunsQuery
    groups: tuple[RunGroup, ...]
    broken: tuple[BrokenRun, ...]
    shown: int
    found: int
    running: int
    is_counting: bool
    tasks: tuple[str, ...]
    places: tuple[str, ...]


def make_runs_page(
    runs: Sequence[IndexedRun],
    standings: dict[str, RunAccuracy | None],
    broken: Sequence[BrokenRun],
    query: RunsQuery,
    places: Sequence[str],
) -> RunsPage:
    """The runs matching the query, sorted, in groups."""
    wanted = sorted(
        (run for run in runs if _fits(run, query)),
        key=_sort_key(query, standings),
        reverse=bool(query.down),
    )
    groups: dict[tuple[str, str], list[IndexedRun]] = {}
    for run in wanted:
        groups.setdefault(run.group, []).append(run)
    return RunsPage(
        query=query,
        groups=tuple(
            RunGroup(title=tell_cases(group[0]), lines=tuple(make_line(run, standings[run.slug]) for run in group))
            for group in groups.values()
        ),
        broken=tuple(broken),
        shown=len(wanted),
        found=len(runs),
        running=sum(run.activity == "running" for run in runs),
        is_counting=any(standing is not None and standing.gain is None for standing in standings.values()),
        tasks=tuple(sorted({run.manifest.task for run in runs})),
        places=tuple(places),
    )


def make_line(run: IndexedRun, standing: RunAccuracy | None) -> RunLine:
    """A run's line in the list."""
    manifest = run.manifest
    return RunLine(
        slug=run.slug,
        name=run.name,
        model=manifest.model,
        task=manifest.task,
        condition=manifest.condition_label,
        activity=run.activity,
        done=len(run.rows),
        total=run.total,
        states=tuple((state, STATE_WORDS.get(state, state), count) for state, count in run.states.items()),
        accuracy=place_rate(standing.accuracy, rival=standing.rival_accuracy) if standing else None,
        rival=f"{standing.rival}, {tell_share(standing.rival_accuracy)}" if standing else "",
        gain=tell_difference(standing.gain) if standing and standing.gain else None,
        is_counting=standing is not None and standing.gain is None,
        cost=tell_money(run.cost_usd, is_least=run.is_least_cost),
        created_at=manifest.created_at[:16].replace("T", " "),
        doubt=run.doubt,
        stop=run.stop,
        is_unanswered=run.is_unanswered,
    )


def tell_cases(run: IndexedRun) -> str:
    """The cases of a run: `90 cases of bench, split test`."""
    selection = run.manifest.selection
    cases: dict[int, Case] = run.selected
    number = len(cases) if cases else (run.total or 0) // run.manifest.condition.samples
    part = f", part {selection.shard}" if selection.shard else ""
    cases_text = count_of(number, "case") if number else "Cases"
    return f"{cases_text} of {run.manifest.benchmark_name}, split {selection.split}{part}"


def _fits(run: IndexedRun, query: RunsQuery) -> bool:
    manifest = run.manifest
    text = f"{run.name} {manifest.model} {manifest.task} {manifest.condition_label}".casefold()
    return (
        all(word in text for word in query.words)
        and query.task in ("", manifest.task)
        and query.activity in ("", run.activity)
    )


def _sort_key(query: RunsQuery, standings: dict[str, RunAccuracy | None]) -> Callable[[IndexedRun], tuple[object, ...]]:
    def value(run: IndexedRun) -> float | str | None:
        standing = standings[run.slug]
        match query.sort:
            case "accuracy":
                return standing.accuracy.value if standing else None
            case "gain":
                return standing.gain.value if standing and standing.gain else None
            case "cost":
                return run.cost_usd
            case "done":
                return len(run.rows) / run.total if run.total else None
            case "started":
                return run.manifest.created_at
            case "model":
                return run.manifest.model.casefold()
        return run.name.casefold()

    def key(run: IndexedRun) -> tuple[object, ...]:
        found = value(run)
        # Unknown values come last, whichever way the list is sorted.
        return (found is None) is not bool(query.down), "" if found is None else found, run.name

    return key
