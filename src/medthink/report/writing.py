"""Write a report: the page, and any other files requested."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.report.entries import group_entries, load_entries
from medthink.report.exports import csv_table, latex_tables, markdown_tables
from medthink.report.figures.overview import overview_drawing
from medthink.report.figures.style import save_drawing
from medthink.report.judged import score_judgements
from medthink.report.page import report_page
from medthink.report.validity import audit_group
from medthink.runs.run import RunOrPath, path_of

PAGES = (".html", ".htm")
FIGURES = (".svg", ".pdf", ".png")


class ReportOptions(TypedDict, total=False):
    """Where the benchmark has moved, whether to train guessers or add JavaScript, which other files to write."""

    data: str | Path | None
    probe: bool
    interactive: bool
    figure: str | Path | None
    csv: str | Path | None
    markdown: str | Path | None
    latex: str | Path | None


def write_report(runs: Sequence[RunOrPath], page: str | Path, **options: Unpack[ReportOptions]) -> Path:
    """Write one self-contained page about the runs, and the files that the options name; returns the page's path."""
    page, figure = Path(page), _path(options.get("figure"))
    refuse_names(page, figure)
    data = _path(options.get("data"))
    groups = group_entries(load_entries([path_of(run) for run in runs], data))
    audited = [audit_group(group, data, trains=options.get("probe", False)) for group in groups]
    judged = score_judgements([entry for group in groups for entry in group.entries])
    # Whatever may be refused is made first, so that a refusal leaves no file behind.
    overview = overview_drawing(groups) if figure is not None else None
    write_atomic(page, [report_page(groups, audited, judged, interactive=options.get("interactive", False)).encode()])
    if figure is not None and overview is not None:
        save_drawing(overview, figure)
    tables = (
        (options.get("csv"), csv_table),
        (options.get("markdown"), markdown_tables),
        (options.get("latex"), latex_tables),
    )
    for path, write in tables:
        if path is not None:
            write_atomic(Path(path), [write(groups, audited).encode()])
    return page


def refuse_names(page: Path, figure: Path | None) -> None:
    """Raise UsageError if a file name has the wrong suffix."""
    if page.suffix.lower() not in PAGES:
        hint = "; a figure is written by --figure" if page.suffix.lower() in FIGURES else ""
        raise UsageError(f"the page {page} must end in .html{hint}", remedy="name it report.html, for instance")
    if figure is not None and figure.suffix not in FIGURES:
        raise UsageError(f"the figure {figure} must end in {', '.join(FIGURES)}", remedy="choose one of them")


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
