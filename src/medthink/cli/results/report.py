"""`medthink report`: runs as one page, and as tables and a figure for a paper."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from medthink.cli.flags import RUN, OutPath, data_flag, figure_flag, json_flag, out_file
from medthink.cli.output import print_json, print_line

if TYPE_CHECKING:
    from typing import Unpack

    from medthink.report.page import ReportOptions


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=RUN)
@out_file
@data_flag
@figure_flag
@click.option("--audit", is_flag=True, help="Also train guessers and compare the runs with them.")
@click.option("--interactive", is_flag=True, help="Add JavaScript that sorts and filters tables.")
@click.option("--csv", metavar="FILE", type=OutPath(".csv"), help="Also a table of all runs.")
@click.option("--markdown", metavar="FILE", type=OutPath(".md"), help="Also the tables in Markdown.")
@click.option("--latex", metavar="FILE", type=OutPath(".tex"), help="Also the tables in LaTeX (booktabs).")
@json_flag
def report(runs: tuple[Path, ...], out: Path, as_json: bool, **options: "Unpack[ReportOptions]") -> None:
    """Write one self-contained page about RUNs (runs or submission files): summary, figures, cases, provenance.

    A sweep or a folder of runs stands for its runs. The page opens from disk and loads nothing from elsewhere; it
    contains no JavaScript unless --interactive is given. Runs on other cases or with expert cues are shown in separate
    groups.

    \b
    Example: medthink report runs/ -o report.html --figure overview.pdf
    Example: medthink report runs/mine theirs.jsonl --data bench/ -o report.html
    """
    from medthink.report.page import write_report
    from medthink.runs.manifest import find_runs

    write_report(find_runs(runs), out, **options)
    written = {"page": out} | {name: options[name] for name in ("figure", "csv", "markdown", "latex")}
    if as_json:
        print_json({name: str(path) for name, path in written.items() if path is not None})
        return
    for path in written.values():
        if path is not None:
            print_line(f"Written: {path}")
