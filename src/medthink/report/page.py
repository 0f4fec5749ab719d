"""The report as one HTML file: it opens from disk and uses no network; JavaScript only on request."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

from medthink import __version__
from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.core.markup import Markup, fold_section, joined, tag
from medthink.core.numbers import count_of
from medthink.metrics.registry import shown_in
from medthink.report.assets import frame_page, read_asset
from medthink.report.cases import MOST_CASES, case_matrix_markup, choose_cases, other_cases_markup, wrong_cases_markup
from medthink.report.exports import csv_table, latex_tables, markdown_tables
from medthink.report.figures.accuracy import accuracy_drawing, letters_drawing
from medthink.report.figures.curves import cost_drawing, curve_panels, curves_drawing
from medthink.report.figures.overview import overview_drawing
from medthink.report.figures.slices import slices_drawing, steps_drawings
from medthink.report.figures.style import FigureSpec, figure_markup, save_drawing
from medthink.report.guessing import GroupAudit, audit_group, validity_markup
from medthink.report.headline import headline_markup
from medthink.report.judged import JudgedReportRun, judged_markup, score_judgements
from medthink.report.provenance import provenance_markup
from medthink.report.runs import ComparableGroup, ReportRun, group_entries, load_entries
from medthink.report.summary import summarise_group
from medthink.report.tables import headline_table, pairwise_markup, steps_table, table_markup
from medthink.runs.run import RunOrPath, path_of
from medthink.scoring.tables import TIERS_MEANING
from medthink.workflow.tasks import known_texts

_TITLE = "Diagnostic reasoning report"
_READING = (
    "Every accuracy is over all cases: a reply that could not be read, a refusal or a failure counts as wrong, and "
    "their number is given next to it. Intervals are 95 % confidence intervals; in figures they are lines.",
    "A rank is a range that contains the run's true rank with 95 % confidence, over all comparisons together.",
    "Runs on other cases, other data or with an expert's cues are shown in separate groups and never ranked together.",
)


def _reading(groups: Sequence[ComparableGroup]) -> tuple[str, ...]:
    """How the page is read; what a tier means, where a group has two."""
    has_tiers = any(place.tier > 1 for group in groups for _, place in group.ranked())
    return (*_READING, TIERS_MEANING) if has_tiers else _READING


_STEPS = "Means over cases, of the texts that have a score."


class Section(NamedTuple):
    """One section of the page."""

    key: str
    heading: str
    content: tuple[Markup, ...]


def report_page(
    groups: Sequence[ComparableGroup],
    audited: Sequence[GroupAudit],
    judged: Sequence[JudgedReportRun],
    *,
    interactive: bool = False,
) -> str:
    """The complete page; `audited` is parallel to the groups, `interactive` adds JavaScript that sorts and filters."""
    sections = list(_sections(groups, audited, judged))
    return frame_page(
        f"{_TITLE}: {_benchmarks(groups)}",
        facts=tag("dl", *_facts(groups), class_="facts"),
        contents=tag("ul", *(tag("li", tag("a", one.heading, href=f"#{one.key}")) for one in sections)),
        body=joined(map(_section_markup, sections)),
        script=read_asset("report.js") if interactive else "",
    )


def _benchmarks(groups: Sequence[ComparableGroup]) -> str:
    return ", ".join(dict.fromkeys(group.benchmark for group in groups))


def _facts(groups: Sequence[ComparableGroup]) -> Iterator[Markup]:
    """The facts at the head of the page: benchmark, fingerprint, dates, runs, release."""
    entries = [entry for group in groups for entry in group.entries]
    prints = dict.fromkeys(entry.manifest.fingerprint[:12] for entry in entries if not entry.is_submission)
    texts = dict.fromkeys(f"{entry.manifest.text_fingerprint[:12]} (texts)" for entry in entries)
    splits = dict.fromkeys(f"{group.split} split, {group.cases_text}" for group in groups)
    facts = (
        ("Benchmark", _benchmarks(groups)),
        ("Cases", "; ".join(splits)),
        ("Fingerprint", ", ".join(prints or texts)),
        ("Run", _dates(entries)),
        ("Runs", f"{count_of(len(entries), 'run')} in {count_of(len(groups), 'group')}"),
        ("Made with", f"medthink {__version__}"),
    )
    for name, value in facts:
        yield tag("div", tag("dt", name), tag("dd", value))


def _dates(entries: Sequence[ReportRun]) -> str:
    """The dates of the first and last call, not of the report, so that the same runs give the same page."""
    first = min((entry.manifest.created_at[:10] for entry in entries if entry.manifest.created_at), default="")
    ended = (entry.manifest.progress and entry.manifest.progress.last_call_at for entry in entries)
    last = max((day[:10] for day in ended if day), default=first)
    return (first or "not known") if first >= last else f"{first} to {last}"


def _sections(
    groups: Sequence[ComparableGroup], audited: Sequence[GroupAudit], judged: Sequence[JudgedReportRun]
) -> Iterator[Section]:
    yield Section("summary", "In short", tuple(_summary(groups, audited)))
    for number, group in enumerate(groups, 1):
        key = f"group-{number}"
        yield Section(key, "Results" if len(groups) == 1 else group.title, tuple(_results(group, key)))
    if judged:
        yield Section("judged", "Judged results", tuple(_judged(judged)))
    if any(one.audits for one in audited):
        named = [(group.title, one) for group, one in zip(groups, audited, strict=True) if one.audits]
        yield Section("validity", "Diagnosis or guessing", tuple(validity_markup(named)))
        yield Section("cases", "Cases", tuple(_cases(groups)))
    runs = [entry for group in groups for entry in group.entries]
    yield Section("runs", "How it was made", (provenance_markup(runs),))


def _section_markup(section: Section) -> Markup:
    heading = tag("h2", section.heading, id=section.key)
    return tag("section", heading, *section.content, aria_labelledby=section.key)


def _summary(groups: Sequence[ComparableGroup], audited: Sequence[GroupAudit]) -> Iterator[Markup]:
    for number, group in enumerate(groups):
        audits = audited[number] if audited else GroupAudit((), None)
        if len(groups) > 1:
            yield tag("h3", group.title)
        if group.lettered:
            yield from headline_markup(group, audits)
        first, *rest = summarise_group(group, {entry.label: audit for entry, audit in audits.audits})
        yield tag("p", _unbroken(first), class_="lead")
        yield tag("ul", *(tag("li", _unbroken(sentence)) for sentence in rest))
    yield fold_section("How to read this", tag("ul", *(tag("li", sentence) for sentence in _reading(groups))))


def _unbroken(sentence: str) -> str:
    """The sentence with its numbers and their unit kept on one line."""
    return sentence.replace(" %", "\N{NO-BREAK SPACE}%")


def _results(group: ComparableGroup, prefix: str) -> Iterator[Markup]:
    if group.lettered:
        yield tag("h3", "Answers")
        yield table_markup(headline_table(group), name="Accuracy by run")
    pairwise = pairwise_markup(group)
    if pairwise:
        yield tag("h3", "Pairwise differences")
        yield pairwise
    texts = known_texts().values()
    for heading in dict.fromkeys(text.heading for text in texts):
        steps = steps_table(group.entries, [text for text in texts if text.heading == heading])
        if steps is None:
            continue
        yield tag("h3", heading)
        yield table_markup(steps, name=f"{heading}: scores")
        notes = [metric.explain() for metric in shown_in("tables") if metric.title in steps.columns]
        yield tag("p", " ".join([_STEPS, *notes]), class_="soft")
    figures = [figure_markup(drawing, prefix=prefix) for drawing in _drawings(group)]
    if figures:
        yield tag("h3", "Figures")
        yield tag("div", *figures, class_="figures")


def _drawings(group: ComparableGroup) -> Iterator[FigureSpec]:
    """The figures that the runs have data for."""
    curves = [curves_drawing(panel) for panel in curve_panels(group)]
    found = (accuracy_drawing(group), *curves, cost_drawing(group), *steps_drawings(group), slices_drawing(group))
    yield from (drawing for drawing in (*found, letters_drawing(group)) if drawing is not None)


def _judged(judged: Sequence[JudgedReportRun]) -> Iterator[Markup]:
    """Judged results; folded if only the embedded judge was asked."""
    content = tuple(judged_markup(judged))
    if all(one.is_smoke_test for run in judged for found in run.scores.kinds.values() for one in found):
        yield fold_section("Only the embedded judge was asked: a smoke test of judging, not a judgement", *content)
    else:
        yield from content


def _cases(groups: Sequence[ComparableGroup]) -> Iterator[Markup]:
    """The matrix of cases and runs, and the cases it links to."""
    for number, group in enumerate(groups, 1):
        if not group.lettered:
            continue
        prefix = f"group-{number}"
        most = max(1, MOST_CASES // sum(bool(one.lettered) for one in groups))
        shown = choose_cases(group, most)
        yield tag("h3", group.title)
        yield case_matrix_markup(group, shown.all, prefix)
        yield tag("h4", "Missed by the largest number of runs")
        yield wrong_cases_markup(group, most, prefix)
        yield from other_cases_markup(group, shown, prefix)


PAGES = (".html", ".htm")
FIGURES = (".svg", ".pdf", ".png")


class ReportOptions(TypedDict, total=False):
    """Options of a report: the benchmark's path, training of guessers, JavaScript, and further files."""

    data: str | Path | None
    audit: bool
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
    audited = [audit_group(group, data, trains=options.get("audit", False)) for group in groups]
    judged = score_judgements([entry for group in groups for entry in group.entries])
    # Everything that may be refused is made first, so that no file is left if it is.
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
        raise UsageError(f"the page {page} must end in .html{hint}", remedy="use a name such as report.html")
    if figure is not None and figure.suffix not in FIGURES:
        raise UsageError(f"the figure {figure} must end in {', '.join(FIGURES)}", remedy="choose one of them")


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
