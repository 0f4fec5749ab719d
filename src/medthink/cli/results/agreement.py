"""`medthink agreement`: agreement of a run's readers and judges, and the effect of a judge's errors on its numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.flags import PATH, RUN, accept_flag, by_case_flag, data_flag, json_flag, key_flag, slices_flag
from medthink.cli.output import console, print_json, print_line, print_table
from medthink.cli.reading import show_unused_rows
from medthink.core.numbers import as_percent

if TYPE_CHECKING:
    from medthink.cases.case import Case
    from medthink.readers.agreement import Bias, RaterPair, RunAgreement
    from medthink.readers.items import ReadItems
    from medthink.stats import Measured

_SHOWN = 12


def show_items(
    run: Path,
    tables: Sequence[Path],
    cases: "Mapping[int, Case]",
    *,
    key: Path | None,
    accept: Sequence[str],
    as_json: bool,
) -> None:
    """Print the item view of a readers' table."""
    from medthink.readers.items import divisive_items

    found = divisive_items(run, tables, cases, key=key, accept=accept)
    if as_json:
        print_json(to_builtins(found))
        return
    if not found:
        print_line("No reader or judge has labelled anything that can be right or wrong.")
    for one in found:
        _show_items(one)


def _show_items(found: "ReadItems") -> None:
    from medthink.scoring.scores import rate_text

    out = console()
    rows = [(one.case, one.items, rate_text(one.wrong), rate_text(one.differ)) for one in found.cases[:_SHOWN]]
    title = f"{found.aspect}: {len(found.cases)} cases, {len(found.raters)} raters; those with most disagreement first"
    out.print(print_table(title, ("case", "items", "labelled wrong", "rater pairs that differ"), rows, right=[0, 1]))
    if found.false_share is None:
        out.print("No reader's label is contradicted by two or more others.")
    else:
        looked = [
            (one.reader, one.case, one.others, as_percent(one.doubt, 0), one.text) for one in found.alone[:_SHOWN]
        ]
        columns = ("reader", "case", "others", "doubt", "item")
        out.print(print_table("Possible errors: one reader against all others", columns, looked, right=[1, 2]))
        out.print(
            f"{len(found.alone)} labels; expect the reader to be right in {as_percent(found.false_share, 0)} "
            "of them if raters err independently, and in 5 to 15 points more if a tenth to a fifth of the items "
            "mislead all raters. A reading list, not a finding; --json has all."
        )
    out.print()


@click.command()
@click.argument("run", type=RUN)
@click.argument("tables", nargs=-1, type=PATH)
@key_flag
@accept_flag
@data_flag
@slices_flag
@by_case_flag
@json_flag
def agreement(
    run: Path,
    tables: tuple[Path, ...],
    key: Path | None,
    accept: tuple[str, ...],
    data: Path | None,
    slices: bool,
    by_case: bool,
    as_json: bool,
) -> None:
    """Compare the readers in TABLES and the judges of RUN with each other.

    TABLES are CSV, XLSX or JSONL files that readers filled in; without any, judges are compared with judges. Every row
    that cannot be used is listed, and empty ones are counted. Nothing is read while a row has the text, number or sheet
    of another unit than its code names, unless --accept names it. The result is stored in RUN/agreement.json.

    \b
    Example: medthink agreement runs/retrieval reading/anna.csv reading/ben.csv --key reading-key.json
    Example: medthink agreement runs/retrieval
    Example: medthink agreement runs/retrieval reading/*.csv --key reading-key.json --by-case
    """
    from msgspec import to_builtins

    from medthink.cases.slices import slice_cases
    from medthink.readers.agreement import measure_agreement, write_agreement
    from medthink.runs.run import Run

    cases = Run.open(run).cases(data)
    if by_case:
        show_items(run, tables, cases, key=key, accept=accept, as_json=as_json)
        return
    sliced = slice_cases(cases.values())
    result, problems = measure_agreement(run, tables, cases, slices=sliced, key=key, accept=accept)
    write_agreement(run, result)
    if as_json:
        print_json(to_builtins(result) | {"unused_rows": to_builtins(problems)})
        return
    show_unused_rows(problems)
    _show(result, with_slices=slices)


def _show(result: "RunAgreement", *, with_slices: bool) -> None:
    out = console()
    out.print(print_table("Raters", ("", "units labelled"), result.raters.items(), right=[1]))
    groups: dict[tuple[str, str, str, str], list[RaterPair]] = {}
    for pair in result.pairs:
        if with_slices or not pair.slicing:
            place = f" · {pair.slicing}: {pair.value}" if pair.slicing else ""
            groups.setdefault((pair.kind, pair.a, pair.b, place), []).append(pair)
    for (kind, a, b, place), pairs in groups.items():
        weighted = ("weighted κ",) if any(pair.ordered for pair in pairs) else ()
        columns = ("", "n", "agree %", "κ", *weighted, "AC1", "α", "MCC")
        rows = [_row(pair, with_weights=bool(weighted)) for pair in pairs]
        out.print(print_table(f"{kind}: {a} and {b}{place}", columns, rows, right=[1]))
    if groups:
        out.print(
            "Intervals are 95 % over cases; – is undefined; ! marks a κ that is misleading because one label prevails."
        )
    _show_validity(result)


def _show_validity(result: "RunAgreement") -> None:
    from medthink.scoring.scores import rate_text

    out = console()
    if result.biases:
        _show_rates(result.biases)
    if result.checks:
        rows_of_checks = [(one.reader, one.right.n, rate_text(one.right)) for one in result.checks]
        out.print(print_table("Planted checks", ("reader", "n", "right"), rows_of_checks, right=[1]))
    if result.problems:
        shown = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in result.problems.items())
        out.print(f"Rows not used: {shown}")


def _show_rates(biases: "tuple[Bias, ...]") -> None:
    """The share of wrong units by the judge, by the readers, and by both together."""
    from medthink.scoring.scores import rate_text

    groups: dict[str, list[Bias]] = {}
    for one in biases:
        groups.setdefault(one.judge, []).append(one)
    columns = ("by", "units read", "judge alone", "judge corrected", "readers alone", "readers and judge")
    for judge, listed in groups.items():
        rows = [(one.aspect, one.validated, *map(rate_text, _rates(one))) for one in listed]
        console().print(print_table(f"Wrong units: {judge} and the readers", columns, rows, right=[1]))
    console().print(
        "Judge corrected: for its errors on units that readers also judged. Readers and judge: prediction-powered, "
        "never less certain than readers alone; it holds if the cases read were drawn at random, as "
        "`medthink reading lists` draws them."
    )
    for one in biases:
        if one.powered and one.powered.together.value is None:
            print_line(f"{one.judge}, {one.aspect}: readers and judge are not combined: {one.powered.together.reason}.")


def _rates(bias: "Bias") -> "list[Measured | None]":
    powered = bias.powered
    by_readers = [powered.readers, powered.together] if powered else [None, None]
    return [bias.reported, bias.corrected, *by_readers]


def _row(pair: "RaterPair", *, with_weights: bool) -> tuple[object, ...]:
    nominal = pair.nominal
    weighted = (_short(pair.ordered.kappa_quadratic) if pair.ordered else "",)
    return (
        pair.aspect.removeprefix("error: "),
        nominal.n,
        _short(nominal.percent, scale=100),
        _short(nominal.kappa) + (" !" if nominal.caution else ""),
        *(weighted if with_weights else ()),
        _short(nominal.ac1),
        _short(nominal.alpha),
        _short(nominal.mcc),
    )


def _short(measured: "Measured", *, scale: float = 1) -> str:
    """A value with its interval, as short as possible."""
    from medthink.stats.estimate import Estimate

    if measured.value is None:
        return "–"

    def write(value: float) -> str:
        # A coefficient needs no 0 before its point; so the table fits 80 columns.
        return f"{value * scale:.0f}" if scale > 1 else f"{value:.2f}".replace("0.", ".", 1)

    if isinstance(measured, Estimate):
        return f"{write(measured.value)} ({write(measured.low)}–{write(measured.high)})"
    return f"{write(measured.value)} (–)"
