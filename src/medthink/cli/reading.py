"""`medthink reading`: blinded reading lists for radiologists."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.command import LazyGroup
from medthink.cli.flags import (
    RUN,
    FiniteFloat,
    accept_flag,
    count_flag,
    data_flag,
    form_flag,
    json_flag,
    key_flag,
    out_file,
    out_folder,
    readers_flag,
    seed_flag,
    split_flag,
)
from medthink.cli.output import print_json, print_line
from medthink.core.errors import Declined

if TYPE_CHECKING:
    from medthink.readers.readings import UnusedRow
    from medthink.readers.training import MarkedReader


@click.group(
    cls=LazyGroup,
    modules={
        "lists": "reading:reading_lists",
        "training": "reading:reading_training",
        "mark": "reading:reading_mark",
        "export": "reading:reading_export",
    },
)
def reading() -> None:
    """Have radiologists read texts blind: lists to fill in, training with known answers, labels in a table.

    \b
    Example: medthink reading lists runs/retrieval --readers anna,ben -o reading/
    """


@click.command(name="lists")
@click.argument("runs", nargs=-1, required=True, type=RUN)
@readers_flag
@out_folder
@click.option(
    "--readers-per-sheet", type=click.IntRange(1), metavar="N", default=2, show_default=True,
    help="How many readers read each sheet.",
)  # fmt: skip
@count_flag("sheets to draw at random; a sheet is one text about one case.  [default: all]")
@click.option(
    "--repeat-share", type=FiniteFloat(0, 1), metavar="SHARE", default=0.1, show_default=True,
    help="Share of sheets that each reader is given twice.",
)  # fmt: skip
@click.option(
    "--check-share", type=FiniteFloat(0, 1), metavar="SHARE", default=0.05, show_default=True,
    help="Share of sheets with a planted statement whose truth is known.",
)  # fmt: skip
@seed_flag
@form_flag
@data_flag
@json_flag
def reading_lists(
    runs: tuple[Path, ...], readers: tuple[str, ...], out: Path, form: str, data: Path | None, **flags: Any
) -> None:
    """Make blinded reading lists from the judged texts of RUNS.

    Each reader gets a list to fill in, a table of the cases and their images, all under codes, and how-to-read.txt.
    FOLDER-key.json, next to the folder, maps the codes to runs and cases: do not give it to the readers. RUNS must have
    been judged before, which segments their texts into units.

    \b
    Example: medthink reading lists runs/retrieval --readers anna,ben --count 50 --seed 7 -o reading/
    """
    from medthink.readers.assignment import ReadingPlan, sheets_of_run
    from medthink.readers.lists import key_path, write_lists

    plan = ReadingPlan(
        readers=readers,
        per_sheet=flags["readers_per_sheet"],
        sheets=flags["count"],
        again_share=flags["repeat_share"],
        planted_share=flags["check_share"],
        seed=flags["seed"],
    )
    key = write_lists(out, [sheet for run in runs for sheet in sheets_of_run(run, data)], plan, form=form)
    planted = sum(code.planted is not None for code in key.codes.values())
    again = sum(code.is_again for code in key.codes.values())
    if flags["as_json"]:
        told = {"folder": str(out), "key": str(key_path(out)), "readers": plan.readers, "rows": len(key.codes)}
        print_json(told | {"second": again, "planted": planted})
        return
    print_line(f"{out}: {len(key.codes)} rows for {len(plan.readers)} readers ({again} second, {planted} planted)")
    print_line(f"{key_path(out)} maps the codes to runs and cases: do not give it to the readers")


@click.command(name="mark")
@click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path))
@key_flag.but(required=True)
@accept_flag
@json_flag
def reading_mark(tables: tuple[Path, ...], key: Path, accept: tuple[str, ...], as_json: bool) -> None:
    """Mark training lists, and write each reader's feedback.

    Next to every list NAME.csv, a file NAME-feedback.csv gives the right label of each sentence, with the reason. A
    reader passes with four out of five right; unanswered counts as wrong. If anyone did not pass, the exit code is 1.

    \b
    Example: medthink reading mark training/anna.xlsx training/ben.xlsx --key training-key.json
    """
    from msgspec import to_builtins

    from medthink.readers.training import mark_tables, read_training_key, write_feedback

    marked = mark_tables(tables, read_training_key(key), accept)
    for path, one in zip(tables, marked, strict=True):
        write_feedback(path.with_name(f"{path.stem}-feedback{path.suffix}"), one)
        for problem in one.problems:
            print_line(problem, stderr=True)
    if as_json:
        print_json([to_builtins(one) for one in marked])
    else:
        for one in marked:
            _show(one)
    failed = [one.reader for one in marked if not one.result.is_passed]
    if failed:
        raise Declined(
            f"not passed: {', '.join(failed)}",
            remedy="discuss the feedback, then train with lists of another seed: medthink reading training --seed",
        )


def _show(marked: "MarkedReader") -> None:
    result = marked.result
    word = "passed" if result.is_passed else "NOT PASSED"
    print_line(f"{marked.reader}: {result.right} of {len(result.feedback)} right, {result.needed} needed: {word}")
    for one in result.feedback:
        if not one.is_right:
            print_line(f"  “{marked.texts.get(one.code, '')}” is {one.expected}; answered: {one.said or 'nothing'}")
            print_line(f"    {one.why}")


@click.command(name="training")
@click.argument("source", type=click.Path(path_type=Path), metavar="DATA|RUN|EXAM")
@readers_flag
@out_folder
@count_flag("sentences to judge", type=click.IntRange(2), default=10, show_default=True)
@split_flag.but(default=None, show_default="train, if there is one")
@seed_flag
@form_flag
@data_flag
@json_flag
def reading_training(
    source: Path, readers: tuple[str, ...], out: Path, data: Path | None, as_json: bool, **flags: Any
) -> None:
    """Make training lists with known answers.

    The sentences are those of the judges' exam: an expert's own, half of them made false by one edit each, half
    reworded or untouched. Readers fill in `factual`; `medthink reading mark` then shows them the right answers, with
    reasons. The answers are in FOLDER-key.json, next to the folder: do not give it to the readers before that.

    \b
    Example: medthink reading training bench/ --readers anna,ben -o training/ --format xlsx
    """
    from medthink.readers.assignment import ReadingPlan
    from medthink.readers.lists import key_path
    from medthink.readers.training import draw_training, training_sheets, write_training

    plan, seed = ReadingPlan(readers=readers, per_sheet=1), flags["seed"]
    sheets, cases = training_sheets(source, flags["split"], seed, data)
    training = draw_training(sheets, items=flags["count"], seed=seed)
    write_training(out, training, cases, readers=plan.readers, seed=seed, form=flags["form"])
    if as_json:
        told = {"folder": str(out), "key": str(key_path(out)), "readers": plan.readers}
        print_json(told | {"sentences": len(training.items)})
        return
    print_line(f"{out}: {len(training.items)} sentences for each of {len(plan.readers)} readers")
    print_line(f"{key_path(out)} holds the answers: do not give it to the readers before their lists are marked")


_ROWS_NAMED = 5


def show_unused_rows(problems: "Iterable[UnusedRow]") -> None:
    """List every row with its reason; empty rows are counted for each list."""
    # Lists of several runs contain rows of the others too; these are counted, not listed.
    told = [problem for problem in problems if problem.kind != "other_run"]
    unlabelled: dict[str, list[int]] = {}
    for problem in told:
        if problem.kind == "unlabelled":
            unlabelled.setdefault(problem.file, []).append(problem.row)
        else:
            print_line(str(problem), stderr=True)
    # Most of a list may still be empty; a line for each row would hide real problems.
    for file, rows in unlabelled.items():
        named = [*map(str, dict.fromkeys(rows))]  # a row may cover several units
        first = ", ".join(named[:_ROWS_NAMED])
        more = ", …" if len(named) > _ROWS_NAMED else ""
        print_line(f"{file}: unlabelled: {len(rows)} units are empty, in row {first}{more}", stderr=True)
    if told:
        print_line(f"{len(told)} rows or cells were not used, for the reasons above.", stderr=True)


@click.command(name="export")
@click.argument("run", type=RUN)
@click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path))
@key_flag
@accept_flag
@out_file
@json_flag
def reading_export(
    run: Path, tables: tuple[Path, ...], key: Path | None, accept: tuple[str, ...], out: Path, as_json: bool
) -> None:
    """Write the readers' labels of the steps of RUN in the published form.

    FILE is .csv, .xlsx or .jsonl. One row for each reader and case, with `stepN`, `human_factualN`, `human_criticalN`
    and `human_error_typesN`. It is coarser than the lists: decisive and contributory become
    critical. An empty cell is a gap; what a reader called unverifiable or not described is written so. Every row of
    TABLES that cannot be used is listed.

    \b
    Example: medthink reading export runs/qwen reading/anna.csv reading/ben.csv --key reading-key.json -o steps.csv
    """
    from medthink.core.errors import UsageError
    from medthink.core.tables import write_table
    from medthink.judge.judged import cut_units
    from medthink.readers.lists import LAYOUT, read_key
    from medthink.readers.readings import import_tables, publish_readings

    if out.exists():
        raise UsageError(f"{out} already exists", remedy="name another file with --out")
    units = cut_units(run)
    imported = import_tables(tables, units, read_key(key) if key else None, accept)
    table = publish_readings(imported.readings, units)
    if not table.rows:
        raise UsageError("no step is labelled in the tables: there is nothing to write", remedy="fill in some rows")
    show_unused_rows(imported.problems)
    write_table(out, table.columns, table.rows, LAYOUT)
    if as_json:
        print_json({"file": str(out), "rows": len(table.rows), "left_out": table.left_out})
    else:
        print_line(f"{out}: {len(table.rows)} rows")
    if table.left_out:
        print_line(
            f"{table.left_out} labels are not about steps and were left out: the published form has no column for them",
            stderr=True,
        )
