"""`medthink compare`: two or more runs on the same cases."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.show import console, print_json, table
from medthink.core.percent import as_percent

if TYPE_CHECKING:
    from medthink.scoring.compare import Comparison, PairOfRuns
    from medthink.scoring.tables import Grid

_SHOWN_CASES = 12


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
    from medthink.scoring.tables import pairs_grid, ranking_grid, with_short_names

    comparison = compare_paths(runs, data, split=split)
    if as_json:
        print_json(to_builtins(comparison))
        return
    comparison = with_short_names(comparison)
    _show_differing(comparison)
    _draw(pairs_grid(comparison))
    console().print()
    for pair in comparison.pairs:
        _show_pair(pair)
    if comparison.ranking is not None:
        _draw(ranking_grid(comparison))


def _show_differing(comparison: "Comparison") -> None:
    rows = [(field, *values) for field, values in comparison.differing.items()]
    console().print(table(f"Cases: {comparison.n_cases}; the runs differ in", ("field", *comparison.runs), rows))
    console().print()


def _show_pair(pair: "PairOfRuns") -> None:
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
    rows = [(one.by, one.value, one.n, points(one.difference), f"{one.p_holm:.3g}") for one in found]
    if rows:
        out.print(table("Slices that differ", ("by", "slice", "n", "difference (95 %)", "p (Holm)"), rows, right=(2,)))
    elif pair.slices:
        out.print(f"  no slice of {len(pair.slices)} differs after correction")
    else:
        out.print("  no slice has enough cases to be compared")
    out.print()


def _draw(grid: "Grid") -> None:
    console().print(table(grid.title, grid.columns, grid.rows, right=grid.right))


def _case_list(cases: tuple[int, ...]) -> str:
    more = f" and {len(cases) - _SHOWN_CASES} more" if len(cases) > _SHOWN_CASES else ""
    return (", ".join(map(str, cases[:_SHOWN_CASES])) or "none") + more
