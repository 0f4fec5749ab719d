"""The report as one HTML file: it opens from disk, holds no script and asks nothing of any network."""

from collections.abc import Iterator, Sequence
from string import Template
from typing import NamedTuple

from medthink import __version__
from medthink.core.markup import Markup, fold, joined, tag
from medthink.metrics.registry import shown_in
from medthink.report.assets import read_asset
from medthink.report.entries import Group
from medthink.report.figures.accuracy import accuracy_drawing
from medthink.report.figures.cost import cost_drawing
from medthink.report.figures.curves import curve_panels, curves_drawing
from medthink.report.figures.letters import letters_drawing
from medthink.report.figures.slices import slices_drawing
from medthink.report.figures.steps import steps_drawings
from medthink.report.figures.style import Drawing, figure_markup
from medthink.report.judged import Judged, judged_markup
from medthink.report.provenance import provenance_markup
from medthink.report.tables import headline_table, steps_table, table_markup
from medthink.report.validity import Audited, validity_markup
from medthink.report.words import count_of, summarise_group
from medthink.report.wrong_cases import MOST_CASES, wrong_cases_markup

_TITLE = "Diagnostic reasoning report"
_READING = (
    "Every accuracy is over all cases: a reply that could not be read, a refusal or a failure counts as wrong, and how "
    "many there are stands beside it. The interval is the range that holds the true rate at 95 %; in figures it is a "
    "line.",
    "A rank is a range: it holds the run's true rank at 95 %, all its comparisons taken together. Runs of one tie "
    "group cannot be told from the best of that group on these cases.",
    "Runs on other cases, other data or with an expert's cues stand in groups of their own and are never ranked "
    "together.",
)
_STEPS = "Means over cases, of the texts that have a score."


class Section(NamedTuple):
    """One section of the page."""

    key: str
    heading: str
    content: tuple[Markup, ...]


def report_page(groups: Sequence[Group], audited: Sequence[Audited], judged: Sequence[Judged]) -> str:
    """The whole page; `audited` runs parallel to the groups."""
    sections = list(_sections(groups, audited, judged))
    template = Template(read_asset("page.html"))
    runs = sum(len(group.entries) for group in groups)
    return template.substitute(
        title=joined((_TITLE,)),
        style=read_asset("tokens.css") + read_asset("page.css"),
        facts=joined((f"{count_of(runs, 'run')} in {count_of(len(groups), 'group')} · medthink {__version__}",)),
        contents=tag("ul", *(tag("li", tag("a", one.heading, href=f"#{one.key}")) for one in sections)),
        body=joined(map(_section_markup, sections)),
    )


def _sections(groups: Sequence[Group], audited: Sequence[Audited], judged: Sequence[Judged]) -> Iterator[Section]:
    yield Section("summary", "In short", tuple(_summary(groups)))
    for number, group in enumerate(groups, 1):
        key = f"group-{number}"
        yield Section(key, "Results" if len(groups) == 1 else group.title, tuple(_results(group, key)))
    if judged:
        yield Section("judged", "What judges say", tuple(judged_markup(judged)))
    if any(one.audits for one in audited):
        named = [(group.title, one) for group, one in zip(groups, audited, strict=True) if one.audits]
        yield Section("validity", "Diagnosis or guessing", tuple(validity_markup(named)))
        yield Section("wrong", "Wrong answers", tuple(_wrong(groups)))
    runs = [entry for group in groups for entry in group.entries]
    yield Section("runs", "How it was made", (provenance_markup(runs),))


def _section_markup(section: Section) -> Markup:
    heading = tag("h2", section.heading, id=section.key)
    return tag("section", heading, *section.content, aria_labelledby=section.key)


def _summary(groups: Sequence[Group]) -> Iterator[Markup]:
    for group in groups:
        if len(groups) > 1:
            yield tag("h3", group.title)
        first, *rest = summarise_group(group)
        yield tag("p", first, class_="lead")
        yield tag("ul", *(tag("li", sentence) for sentence in rest))
    yield fold("How to read this", tag("ul", *(tag("li", sentence) for sentence in _READING)))


def _results(group: Group, prefix: str) -> Iterator[Markup]:
    if group.lettered:
        yield tag("h3", "Answers")
        yield table_markup(headline_table(group), name="Accuracy by run")
    for heading, names in (("Written steps", ("findings", "summary")), ("Discussions", ("discussion",))):
        steps = steps_table(group.entries, names)
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


def _drawings(group: Group) -> Iterator[Drawing]:
    """The figures that the runs have data for."""
    curves = [curves_drawing(panel) for panel in curve_panels(group)]
    found = (accuracy_drawing(group), *curves, cost_drawing(group), *steps_drawings(group), slices_drawing(group))
    yield from (drawing for drawing in (*found, letters_drawing(group)) if drawing is not None)


def _wrong(groups: Sequence[Group]) -> Iterator[Markup]:
    lettered = [group for group in groups if group.lettered]
    for group in lettered:
        yield tag("h3", group.title)
        yield wrong_cases_markup(group, max(1, MOST_CASES // len(lettered)))
