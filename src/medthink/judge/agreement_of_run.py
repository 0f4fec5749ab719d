"""A run on disk and the tables of its readers, put together: for `medthink agree` and `medthink reading`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from medthink.cases.case import Case
from medthink.core.errors import UsageError
from medthink.judge.agreeing import compare_raters
from medthink.judge.agreements import Agreements
from medthink.judge.blinding import ReadingKey, Sheet, gather_sheets, read_key
from medthink.judge.importing import import_tables
from medthink.judge.judged import load_judged, open_benchmark
from medthink.judge.readings import Problem
from medthink.judge.slicing import Slices
from medthink.judge.units import UnitKey, UnitSet, read_units
from medthink.runs.run import Run
from medthink.runs.showing import Showing


def agree_on_run(
    run: Path, tables: Sequence[Path], cases: Mapping[int, Case], *, slices: Slices, key: Path | None = None
) -> tuple[Agreements, tuple[Problem, ...]]:
    """Compare the readers in the tables and the judges of the run; returns also every row that was not used."""
    units = cut_units(run)
    opened = read_key(key) if key else None
    imported = import_tables(tables, units, opened)
    judged = load_judged(run, cases)
    result = compare_raters(imported, judged.judgements, units, slices=slices, truths=planted_truths(opened))
    return result, imported.problems


def planted_truths(key: ReadingKey | None) -> Mapping[str, bool]:
    """The truth behind every planted code."""
    codes = key.codes if key else {}
    return {name: code.planted for name, code in codes.items() if code.planted is not None}


def sheets_of_run(run: Path, data: Path | None = None) -> list[Sheet]:
    """Everything of a run that can be read, with the cases as its model was shown them."""
    manifest = Run.open(run).manifest
    benchmark = open_benchmark(manifest, data, with_images=True)
    units = cut_units(run)
    showing = Showing(manifest.condition, benchmark)
    cases = {number: benchmark.case(number) for number in sorted({one.case for one in units.values()})}
    shown = {number: (case, showing.show(case)[0]) for number, case in cases.items()}
    return gather_sheets(manifest, units.values(), shown)


def cut_units(run: Path) -> dict[UnitKey, UnitSet]:
    """The run's units, or UsageError where it was never cut."""
    units = read_units(run)
    if not units:
        raise UsageError(
            f"{run}: its texts are not cut into units yet", remedy=f"run medthink judge {run} --judge SPEC first"
        )
    return units
