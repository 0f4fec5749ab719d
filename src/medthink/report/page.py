"""The report as one HTML file: it opens from disk, holds no script and asks nothing of any network."""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from string import Template

from medthink import __version__
from medthink.report.entries import Group
from medthink.report.figures.accuracy import accuracy_drawing
from medthink.report.figures.cost import cost_drawing
from medthink.report.figures.curves import curve_panels, curves_drawing
from medthink.report.figures.letters import letters_drawing
from medthink.report.figures.slices import slices_drawing
from medthink.report.figures.steps import steps_drawing
from medthink.report.figures.style import Drawing, draw_markup
from medthink.report.markup import Markup, clean, fold, joined, tag
from medthink.report.provenance import provenance_markup
from medthink.report.tables import METRIC_NAMES, headline_table, steps_table, table_markup
from medthink.report.words import count_of, summarise_group
from medthink.report.wrong_cases import MOST_CASES, wrong_cases_markup

_TITLE = "Diagnostic reasoning report"
_READING = (
    "Every accuracy is over all cases: a reply that could not be read, a refusal or a failure counts as wrong, and how "
    "many there are stands beside it. The interval is the range that holds the true rate at 95 %.",
    "A rank is a range: it holds the run's true rank at 95 %, all its comparisons taken together. Runs of one tie "
    "group cannot be told from the best of that group on these cases.",
    "Runs on other cases, other data or with an expert's cues stand in groups of their own and are never ranked "
    "together.",
)
_RADCLIQ = (
    "RadCliQ: lower is better. It was fitted on reports of chest radiographs; for anything else it only orders texts."
)


def report_page(groups: Sequence[Group]) -> str:
    """The whole page."""
    room = files("medthink.report")
    template = Template(room.joinpath("page.html").read_text(encoding="utf-8"))
    runs = sum(len(group.entries) for group in groups)
    return template.substitute(
        title=joined((_TITLE,)),
        style=room.joinpath("page.css").read_text(encoding="utf-8"),
        facts=joined((f"{count_of(runs, 'run')} in {count_of(len(groups), 'group')} · medthink {__version__}",)),
        contents=_contents(groups),
        body=joined(_sections(groups)),
    )


def _contents(groups: Sequence[Group]) -> Markup:
    links = [("summary", "In short")]
    links += [(f"group-{number}", _heading(group, groups)) for number, group in enumerate(groups, 1)]
    links += [("wrong", "Wrong answers")] if _has_letters(groups) else []
    links += [("runs", "How it was made")]
    return tag("ul", *(tag("li", tag("a", name, href=f"#{key}")) for key, name in links))


def _sections(groups: Sequence[Group]) -> Iterator[Markup]:
    yield _section("summary", "In short", *_summary(groups))
    for number, group in enumerate(groups, 1):
        yield _section(f"group-{number}", _heading(group, groups), *_results(group, f"group-{number}"))
    if _has_letters(groups):
        yield _section("wrong", "Wrong answers", *_wrong(groups))
    runs = [entry for group in groups for entry in group.entries]
    yield _section("runs", "How it was made", provenance_markup(runs))


def _summary(groups: Sequence[Group]) -> Iterator[Markup]:
    for group in groups:
        if len(groups) > 1:
            yield tag("h3", group.title)
        first, *rest = summarise_group(group)
        yield tag("p", first, class_="lead")
        yield tag("ul", *(tag("li", sentence) for sentence in rest))
    yield fold("How to read this", tag("ul", *(tag("li", sentence) for sentence in _READING)))


def _heading(group: Group, groups: Sequence[Group]) -> str:
    return "Results" if len(groups) == 1 else group.title


def _results(group: Group, prefix: str) -> Iterator[Markup]:
    if group.lettered:
        yield tag("h3", "Answers")
        yield table_markup(headline_table(group), name="Accuracy by run")
    steps = steps_table(group.entries)
    if steps:
        yield tag("h3", "Written steps")
        yield table_markup(steps, name="Scores of written steps")
        if METRIC_NAMES["radcliq_v1"] in steps.columns:
            yield tag("p", _RADCLIQ, class_="soft")
    figures = [_figure(drawing, prefix) for drawing in _drawings(group)]
    if figures:
        yield tag("h3", "Figures")
        yield tag("div", *figures, class_="figures")


def _drawings(group: Group) -> Iterator[Drawing]:
    """The figures that the runs have data for."""
    curves = [curves_drawing(panel) for panel in curve_panels(group)]
    found = (accuracy_drawing(group), *curves, cost_drawing(group), steps_drawing(group), slices_drawing(group))
    yield from (drawing for drawing in (*found, letters_drawing(group)) if drawing is not None)


def _figure(drawing: Drawing, prefix: str) -> Markup:
    numbers = fold("Numbers", table_markup(drawing.table, name=f"{drawing.title}: numbers"))
    return tag("div", draw_markup(drawing, prefix=prefix), numbers, class_="figure")


def _wrong(groups: Sequence[Group]) -> Iterator[Markup]:
    lettered = [group for group in groups if group.lettered]
    for group in lettered:
        yield tag("h3", group.title)
        yield wrong_cases_markup(group, max(1, MOST_CASES // len(lettered)))


def _has_letters(groups: Sequence[Group]) -> bool:
    return any(group.lettered for group in groups)


def _section(key: str, heading: str, *children: str) -> Markup:
    return tag("section", tag("h2", clean(heading), id=key), *children, aria_labelledby=key)
