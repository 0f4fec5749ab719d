"""`medthink compare`: two or more runs on the same cases."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.flags import RUN, by_case_flag, data_flag, json_flag, split_flag
from medthink.cli.output import console, draw, print_json, print_line, print_table
from medthink.core.errors import UsageError
from medthink.core.numbers import as_p_value, as_percent, as_points_and_ends, as_usd

if TYPE_CHECKING:
    from medthink.runs.manifest import RunSpec
    from medthink.scoring.compare import Comparison, ItemView, PairOfRuns
    from medthink.scoring.sequential import SequentialStatement, StopWhenKnown
    from medthink.stats.confidence_sequences import WatchClaim
    from medthink.stats.estimate import Measured

_SHOWN_CASES = 12
_FEWEST_VENDORS = 3
# With more runs, pairs and slices would fill many pages; --json has them all.
_MOST_BESIDE = 6


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@data_flag
@split_flag
@by_case_flag
@click.option(
    "--sequential",
    is_flag=True,
    help="Compare runs case by case in a random order, with intervals that "
    "stay valid at every look; runs need not be finished.",
)
@json_flag
def compare(
    runs: tuple[Path, ...], data: Path | None, split: str, by_case: bool, sequential: bool, as_json: bool
) -> None:
    """Compare RUNS (run folders or submission files) on the same cases, and report which differences are significant.

    A sweep or a folder of runs stands for its runs. Runs of different benchmarks, cases or kinds are refused, with the
    reason.

    \b
    Example: medthink compare runs/all-images runs/no-images
    Example: medthink compare runs/ours theirs.jsonl --data bench/
    Example: medthink compare runs/ --by-case
    Example: medthink compare runs/a runs/b --sequential
    """
    from medthink.runs.manifest import find_runs
    from medthink.scoring.compare import compare_paths
    from medthink.scoring.tables import (
        pairs_table,
        partial_note,
        ranking_note,
        ranking_table,
        samples_note,
        with_short_names,
    )

    runs = find_runs(runs)
    if sequential:
        _watch(runs, data, split, as_json=as_json)
        return
    if by_case:
        _show_items(runs, data, split, as_json=as_json)
        return
    comparison = compare_paths(runs, data, split=split)
    if as_json:
        print_json(to_builtins(comparison))
        return
    comparison = with_short_names(comparison)
    for note in (partial_note(comparison), samples_note(comparison.samples)):
        if note:
            print_line(note)
    if len(comparison.runs) <= _MOST_BESIDE:
        _show_differing(comparison)
        draw(pairs_table(comparison))
        console().print()
        for pair in comparison.pairs:
            _show_pair(pair, comparison.p_floor)
    else:
        _show_many(comparison)
    if comparison.ranking is not None:
        draw(ranking_table(comparison))
        console().print(ranking_note(comparison))


def _watch(runs: tuple[Path, ...], data: Path | None, split: str, *, as_json: bool) -> None:
    from medthink.core.files import short_names
    from medthink.scoring.inputs import load_all
    from medthink.scoring.sequential import compare_sequentially

    loaded = load_all(runs, data, split=split)
    names = short_names([one.name for one in loaded])
    statements = compare_sequentially([one._replace(name=names[one.name]) for one in loaded])
    if as_json:
        print_json(to_builtins(statements))
    else:
        show_stopping(statements)


def _show_items(runs: tuple[Path, ...], data: Path | None, split: str, *, as_json: bool) -> None:
    from medthink.scoring.compare import compare_loaded, load_scored, view_items
    from medthink.scoring.scores import rate_text, value_text
    from medthink.scoring.tables import partial_note, with_short_names

    loaded = load_scored(runs, data, split=split)
    comparison = compare_loaded(loaded)
    view = view_items(loaded.scored, comparison)
    if as_json:
        print_json(to_builtins(view) | {"partial": to_builtins(comparison.partial)})
        return
    if comparison.partial:
        print_line(partial_note(with_short_names(comparison)))
    out = console()
    rows = [
        (
            one.case,
            rate_text(one.right),
            as_percent(one.difficulty, 0),
            value_text(one.discrimination),
            "yes" if one.is_separating else "",
        )
        for one in view.table.cases[:_SHOWN_CASES]
    ]
    columns = ("case", "models right (95 %)", "difficulty", "discrimination", "separates the leaders")
    out.print(
        print_table(f"Hardest of {len(view.table.cases)} cases, {view.table.models} models", columns, rows, right=(0,))
    )
    separating = tuple(one.case for one in view.table.cases if one.is_separating)
    out.print(f"{len(separating)} cases separate the leaders: {_case_list(separating)}. --json has every case.")
    _show_suspects(view)


def _show_suspects(view: "ItemView") -> None:
    out = console()
    if view.suspects is None:
        out.print("No reading list of suspect keys: it needs at least six models.")
        return
    found = view.suspects
    listed = ", ".join(f"{one.case} (key {one.key}, all say {one.voted})" for one in found.listed) or "none"
    shares = " and ".join(
        f"{as_percent(share, 0)} if {wrong} of keys are wrong" for wrong, share in found.false_share.items()
    )
    out.print(
        f"Possibly wrong keys, because the best {len(found.voters)} models all name the same other option: {listed}."
    )
    out.print(
        f"Expect false alarms: {shares}, where models are strong; 45 to 72 % where weak models share distractors."
        + _vendor_note(view.vendors)
    )


def _vendor_note(vendors: int | None) -> str:
    if vendors is None:
        return " Files do not say which vendor their model comes from: three or more vendors are better."
    if vendors >= _FEWEST_VENDORS:
        return ""
    return f" The models come from {vendors} vendor{'s' if vendors > 1 else ''}: three or more are better."


def _show_differing(comparison: "Comparison") -> None:
    from medthink.scoring.tables import states_text

    rows = [(field, *values) for field, values in comparison.differing.items()]
    rows.append(("answers", *(states_text(comparison.states.get(run, {})) for run in comparison.runs)))
    title = f"Cases: {comparison.n_cases}; the runs differ in"
    console().print(print_table(title, ("field", *comparison.runs), rows))
    console().print()


def _show_many(comparison: "Comparison") -> None:
    """Print a summary of many runs: the number of differing pairs, and the detectable difference."""
    from statistics import quantiles

    from medthink.stats.power import Resolution

    different = sum(pair.is_different for pair in comparison.pairs)
    out = console()
    out.print(
        f"{comparison.n_cases} cases, {len(comparison.runs)} runs: {different} of {len(comparison.pairs)} pairs "
        "differ. --json has every pair."
    )
    seen = [pair.resolution.difference * 100 for pair in comparison.pairs if isinstance(pair.resolution, Resolution)]
    if len(seen) > 1:
        low, middle, high = quantiles(seen, n=4)
        out.print(
            f"Among this many runs, a difference of {middle:.1f} points is found with 80 % power in the median pair "
            f"(quartiles {low:.1f} to {high:.1f})."
        )
    else:
        out.print("There are too few cases to show any difference between runs that agree this closely.")
    out.print()


def _show_pair(pair: "PairOfRuns", p_floor: float) -> None:
    from medthink.scoring.scores import difference_text
    from medthink.stats.power import Resolution

    out = console()
    if isinstance(pair.resolution, Resolution):
        seen = (
            f"{pair.resolution.n} cases show a difference of {pair.resolution.difference * 100:.1f} points or more "
            f"with {as_percent(pair.resolution.power, 0)} power."
        )
    else:
        seen = f"no difference could have been shown: {pair.resolution.reason}."
    out.print(f"{pair.a} − {pair.b}: {seen}")
    out.print(f"  won: {_case_list(pair.won)}\n  lost: {_case_list(pair.lost)}")
    found = [one for one in pair.slices if one.is_different]
    rows = [
        (one.by, one.value, one.n, difference_text(one.difference), as_p_value(one.p_value, p_floor)) for one in found
    ]
    if rows:
        columns = ("by", "slice", "n", "difference (95 %)", "p (all slices)")
        out.print(print_table("Slices that differ", columns, rows, right=(2,)))
    elif pair.slices:
        widest = max(_half_width(one.difference) for one in pair.slices)
        out.print(
            f"  none of {len(pair.slices)} slices is shown to differ (intervals up to ±{widest * 100:.0f} points)"
        )
    else:
        out.print("  no slice has enough cases to be compared")
    out.print()


def _half_width(measured: "Measured") -> float:
    from medthink.stats.estimate import Estimate

    return (measured.high - measured.low) / 2 if isinstance(measured, Estimate) else 0.0


def _case_list(cases: tuple[int, ...]) -> str:
    more = f" and {len(cases) - _SHOWN_CASES} more" if len(cases) > _SHOWN_CASES else ""
    return (", ".join(map(str, cases[:_SHOWN_CASES])) or "none") + more


_CLAIMS = {
    "these": "these {n} cases: the accuracy that the finished run would have",
    "such": "all such cases: the population that these were drawn from",
}


def open_rule(spec: "RunSpec", goal: str, claim: "WatchClaim") -> "StopWhenKnown":
    """The stopping rule for a goal: a half-width in points, or a finished run or file to compare with."""
    from medthink.runs.selection import read_selected
    from medthink.scoring.inputs import load_all, refuse_partial
    from medthink.scoring.sequential import StopWhenKnown, case_rights
    from medthink.workflow.tasks import has_letters

    if not has_letters(spec.task, spec.condition):
        raise UsageError("this task yields no letters, so --stop-when does not apply", remedy="leave out --stop-when")
    held = read_selected(spec.benchmark, spec.selection)
    half_width, rival = _read_points(goal), None
    if half_width is None:
        rival = case_rights(refuse_partial(load_all([Path(goal)], spec.benchmark, split=spec.selection.split)[0]))
    return StopWhenKnown(
        held.cases,
        held.text_fingerprint,
        samples=spec.condition.samples,
        claim=claim,
        half_width=half_width,
        rival=rival,
    )


def _read_points(goal: str) -> float | None:
    try:
        points = float(goal)
    except ValueError:
        return None
    if not 0 < points < 50:
        raise UsageError(f"--stop-when {goal}", remedy="give a half-width between 0 and 50 points, or a run")
    return points / 100


def show_stopping(statements: "list[SequentialStatement]") -> None:
    """The statements as a table, with the claims in words."""
    rows = [
        (
            one.about,
            one.claim,
            f"{one.seen} of {one.n_cases}",
            _interval(one),
            one.verdict.removeprefix("the "),
            "–" if one.known_after is None else f"{one.known_after}",
            _saved(one),
        )
        for one in statements
    ]
    columns = ("what", "claim", "cases", "95 % interval, valid at every look", "known", "after", "cases saved")
    out = console()
    out.print(print_table("Cases in a random order", columns, rows))
    for claim in dict.fromkeys(one.claim for one in statements):
        out.print(f"{claim}: {_CLAIMS[claim].format(n=statements[0].n_cases)}.")
    out.print(
        "These intervals stay valid however often you look; Wilson's and McNemar's do not if a run is stopped early."
    )


def _saved(one: "SequentialStatement") -> str:
    if one.known_after is None:
        return "–"
    money = "" if one.saved_usd is None else f", {as_usd(one.saved_usd)}"
    return f"{one.saved_cases} ({as_percent(one.saved_cases / one.n_cases, 0)}){money}"


def _interval(one: "SequentialStatement") -> str:
    if one.low is None or one.high is None:
        return "verdict only"
    if one.is_difference:
        return as_points_and_ends(0.0, one.low, one.high)[1]
    return f"{one.low * 100:.1f} to {one.high * 100:.1f}"
