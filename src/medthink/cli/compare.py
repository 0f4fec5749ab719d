"""`medthink compare`: two or more runs on the same cases."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.show import console, print_json, table
from medthink.core.numbers import as_p_value, as_percent

if TYPE_CHECKING:
    from medthink.scoring.compare import Comparison, PairOfRuns
    from medthink.scoring.tables import Grid
    from medthink.stats.estimate import Measured

_SHOWN_CASES = 12
# Of more runs, pairs and slices fill page after page: --json has them all.
_MOST_BESIDE = 6


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--data", type=click.Path(path_type=Path), help="The benchmark; needed for files, and for runs whose data moved."
)
@click.option("--split", default="test", show_default=True, help="For files of predictions: the split they are about.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(runs: tuple[Path, ...], data: Path | None, split: str, as_json: bool) -> None:
    """Compare RUNS (run folders or submission files) on the same cases, and say which differences are shown.

    Runs of different benchmarks, cases or kinds are refused, naming what differs.

    \b
    Example: medthink compare runs/all-images runs/no-images
    Example: medthink compare runs/ours theirs.jsonl --data bench/
    """
    from medthink.scoring.compare import compare_paths
    from medthink.scoring.tables import pairs_grid, ranking_grid, ranking_note, with_short_names

    comparison = compare_paths(runs, data, split=split)
    if as_json:
        print_json(to_builtins(comparison))
        return
    comparison = with_short_names(comparison)
    if len(comparison.runs) <= _MOST_BESIDE:
        _show_differing(comparison)
        _draw(pairs_grid(comparison))
        console().print()
        for pair in comparison.pairs:
            _show_pair(pair, comparison.p_floor)
    else:
        _show_many(comparison)
    if comparison.ranking is not None:
        _draw(ranking_grid(comparison))
        console().print(ranking_note(comparison))


def _show_differing(comparison: "Comparison") -> None:
    rows = [(field, *values) for field, values in comparison.differing.items()]
    console().print(table(f"Cases: {comparison.n_cases}; the runs differ in", ("field", *comparison.runs), rows))
    console().print()


def _show_many(comparison: "Comparison") -> None:
    """Many runs: how many pairs differ, and what difference the cases could have shown."""
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
            f"Among so many runs, a difference of {middle:.1f} points is found with 80 % power in the median pair "
            f"(quartiles {low:.1f} to {high:.1f})."
        )
    else:
        out.print("These cases are too few to show any difference between runs that agree as much as these.")
    out.print()


def _show_pair(pair: "PairOfRuns", p_floor: float) -> None:
    from medthink.scoring.scores import points
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
    rows = [(one.by, one.value, one.n, points(one.difference), as_p_value(one.p_value, p_floor)) for one in found]
    if rows:
        columns = ("by", "slice", "n", "difference (95 %)", "p (all slices)")
        out.print(table("Slices that differ", columns, rows, right=(2,)))
    elif pair.slices:
        widest = max(_half_width(one.difference) for one in pair.slices)
        out.print(
            f"  no slice of {len(pair.slices)} is shown to differ (intervals reach up to ±{widest * 100:.0f} points)"
        )
    else:
        out.print("  no slice has enough cases to be compared")
    out.print()


def _half_width(measured: "Measured") -> float:
    from medthink.stats.estimate import Estimate

    return (measured.high - measured.low) / 2 if isinstance(measured, Estimate) else 0.0


def _draw(grid: "Grid") -> None:
    console().print(table(grid.title, grid.columns, grid.rows, right=grid.right))


def _case_list(cases: tuple[int, ...]) -> str:
    more = f" and {len(cases) - _SHOWN_CASES} more" if len(cases) > _SHOWN_CASES else ""
    return (", ".join(map(str, cases[:_SHOWN_CASES])) or "none") + more
