"""`medthink report`: runs as one page to read and show, and as tables and a figure for a paper."""

from pathlib import Path

import click

from medthink.cli.show import say

_PAGES = (".html", ".htm")
_FIGURES = (".svg", ".pdf", ".png")


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The page to write: .html."
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="Where the benchmark is, when it is no longer where it was."
)
@click.option(
    "--figure", metavar="FILE", type=click.Path(path_type=Path), help="Also the overview figure: .pdf, .svg or .png."
)
@click.option("--probe", "trains", is_flag=True, help="Also train guessers and set the runs against them.")
@click.option("--csv", "csv_file", metavar="FILE", type=click.Path(path_type=Path), help="Also a table of all runs.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Also the tables in Markdown.")
@click.option("--latex", metavar="FILE", type=click.Path(path_type=Path), help="Also the tables in LaTeX (booktabs).")
def report(
    runs: tuple[Path, ...],
    out: Path,
    data: Path | None,
    figure: Path | None,
    trains: bool,
    csv_file: Path | None,
    markdown: Path | None,
    latex: Path | None,
) -> None:
    """Write one self-contained page about RUNs: summary, figures, wrong answers, how it was made.

    The page opens from disk, holds no script and loads nothing from elsewhere. Runs on other cases or with expert cues
    are shown in groups of their own.

    \b
    Example: medthink report runs/* -o report.html --figure overview.pdf
    """
    if out.suffix.lower() not in _PAGES:
        hint = "; a figure is written by --figure" if out.suffix.lower() in _FIGURES else ""
        raise click.BadParameter(f"{out} must end in .html{hint}", param_hint="-o")
    if figure is not None and figure.suffix not in _FIGURES:
        raise click.BadParameter(f"must end in {', '.join(_FIGURES)}", param_hint="--figure")
    from medthink.core.files import write_atomic
    from medthink.report.entries import group_entries, load_entries
    from medthink.report.exports import csv_table, latex_tables, markdown_tables
    from medthink.report.figures.overview import overview_drawing
    from medthink.report.figures.style import save_drawing
    from medthink.report.judged import score_judgements
    from medthink.report.page import report_page
    from medthink.report.validity import audit_group

    groups = group_entries(load_entries(runs, data))
    audited = [audit_group(group, data, trains=trains) for group in groups]
    judged = score_judgements([entry for group in groups for entry in group.entries])
    # What can be refused is made first, so that a refusal leaves no file behind.
    overview = overview_drawing(groups) if figure is not None else None
    write_atomic(out, [report_page(groups, audited, judged).encode()])
    if figure is not None and overview is not None:
        save_drawing(overview, figure)
    for path, write in ((csv_file, csv_table), (markdown, markdown_tables), (latex, latex_tables)):
        if path is not None:
            write_atomic(path, [write(groups).encode()])
    for path in (out, figure, csv_file, markdown, latex):
        if path is not None:
            say(f"Written: {path}")
