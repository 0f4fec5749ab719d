"""`medthink report`: runs as one page to read and show, and as tables and a figure for a paper."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from medthink.cli.output import print_line

if TYPE_CHECKING:
    from typing import Unpack

    from medthink.report.page import ReportOptions


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The page to write: .html."
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="The benchmark: for submission files, or if it has moved."
)
@click.option(
    "--figure", metavar="FILE", type=click.Path(path_type=Path), help="Also the overview figure: .pdf, .svg or .png."
)
@click.option("--audit", is_flag=True, help="Also train guessers and compare the runs with them.")
@click.option("--interactive", is_flag=True, help="Add JavaScript that sorts and filters tables.")
@click.option("--csv", metavar="FILE", type=click.Path(path_type=Path), help="Also a table of all runs.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Also the tables in Markdown.")
@click.option("--latex", metavar="FILE", type=click.Path(path_type=Path), help="Also the tables in LaTeX (booktabs).")
def report(runs: tuple[Path, ...], out: Path, **options: "Unpack[ReportOptions]") -> None:
    """Write one self-contained page about RUNs (runs or submission files): summary, figures, cases, how it was made.

    The page opens from disk and loads nothing from elsewhere; it contains no JavaScript unless --interactive is given.
    Runs on other cases or with expert cues are shown in separate groups.

    \b
    Example: medthink report runs/* -o report.html --figure overview.pdf
    Example: medthink report runs/mine theirs.jsonl --data bench/ -o report.html
    """
    from medthink.report.page import write_report

    write_report(runs, out, **options)
    for path in (out, options["figure"], options["csv"], options["markdown"], options["latex"]):
        if path is not None:
            print_line(f"Written: {path}")
