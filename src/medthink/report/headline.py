"""The first screen: accuracy with interval, strongest rival, gain and cost of every run in one figure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from medthink.audit.runs import RivalResult, RunAudit
from medthink.core.markup import Markup, fold_section, joined, tag
from medthink.core.numbers import as_percent
from medthink.report.figures.accuracy import chance
from medthink.report.guessing import GroupAudit, points_with_interval
from medthink.report.runs import ComparableGroup, ReportRun
from medthink.scoring.scores import cost_text
from medthink.stats.comparisons.ranks import RankedRun
from medthink.stats.estimate import ends_of, rank_range, value_of

_WIDTH, _HEIGHT, _MARGIN = 260, 18, 6
_COLUMNS = ("Run", "Accuracy, 95 % interval", "Strongest rival", "Gain over it, points", "Cost")
_NUMBERS = {3, 4}
_LEGEND = (
    "Dot and line: accuracy and its 95 % interval. Dashed tick: the strongest rival, which lacks the decisive input. "
    "Thin line: chance. Gain is accuracy minus the rival's on the same cases. “No image-free run given”: without a "
    "run of the same model without images, the gain may come from the text and not from the images."
)


class _Scale(NamedTuple):
    low: float
    high: float

    def x(self, share: float) -> float:
        """The position of a share on the axis, in the picture's units."""
        return round(_MARGIN + (share - self.low) / (self.high - self.low) * (_WIDTH - 2 * _MARGIN), 1)


def is_baseline(entry: ReportRun) -> bool:
    """Whether it is a run of an embedded baseline, which is included for comparison only."""
    return entry.manifest.model.startswith("baseline/")


def headline_markup(group: ComparableGroup, audited: GroupAudit) -> Iterator[Markup]:
    """One row per run, best first; embedded baselines are folded, unless there is nothing else."""
    audits = {entry.label: audit for entry, audit in audited.audits}
    models = [entry for entry in group.lettered if not is_baseline(entry)] or list(group.lettered)
    rest = [entry for entry in group.lettered if entry not in models]
    scale, line = _scale(group, audited), chance(group)
    places = {entry.label: place for entry, place in group.ranked()}
    yield _table(models, audits, places, scale, line)
    if rest:
        yield fold_section(
            f"Embedded baselines ({len(rest)})", _table(rest, audits, places, scale, line), class_="baselines"
        )
    yield tag("p", f"{_LEGEND} All on {group.cases_text}.", class_="soft small")


def _scale(group: ComparableGroup, audited: GroupAudit) -> _Scale:
    """One axis for all rows, in steps of ten points, around everything that is drawn."""
    shares = [chance(group)]
    for entry in group.lettered:
        shares += ends_of(entry.accuracy) or [value_of(entry.accuracy) or 0.0]
    shares += [value_of(audit.strongest_accuracy) or 0.0 for _, audit in audited.audits]
    low, high = int(min(shares) * 10) / 10, min(1.0, (int(max(shares) * 10) + 1) / 10)
    return _Scale(low, max(high, low + 0.1))


def _table(
    entries: Sequence[ReportRun], audits: dict[str, RunAudit], places: dict[str, RankedRun], scale: _Scale, line: float
) -> Markup:
    axis = tag("span", f"axis {scale.low * 100:.0f}–{scale.high * 100:.0f} %", class_="soft")
    notes = {1: (" ", axis)}
    head = tag(
        "tr",
        *(
            tag("th", name, *notes.get(i, ()), scope="col", class_="number" if i in _NUMBERS else None)
            for i, name in enumerate(_COLUMNS)
        ),
    )
    rows = (_row(entry, audits.get(entry.label), places.get(entry.label), scale, line) for entry in entries)
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="board")
    return tag(
        "div", table, class_="box", role="region", aria_label="Accuracy, rival, gain and cost by run", tabindex=0
    )


def _row(entry: ReportRun, audit: RunAudit | None, place: RankedRun | None, scale: _Scale, line: float) -> Markup:
    rival = audit.strongest if audit else None
    under = f"rank {rank_range(place.rank, place.worst)}, tier {place.tier}" if place else ""
    name = tag("th", tag("span", entry.label, class_="name"), tag("span", under, class_="under"), scope="row")
    value, ends = value_of(entry.accuracy), ends_of(entry.accuracy)
    shown = "–" if value is None else as_percent(value)
    interval = f"{ends[0] * 100:.1f}–{ends[1] * 100:.1f}" if ends else ""
    number = tag("span", tag("b", shown), tag("span", interval, class_="under"), class_="figure-number")
    chart = _chart(value, ends, value_of(rival.accuracy) if rival else None, scale, line)
    return tag(
        "tr",
        name,
        tag("td", number, chart, class_="accuracy", data_sort=_sort_key(value)),
        tag(
            "td",
            *_rival_cells(audit, rival),
            class_="words",
            data_sort=_sort_key(value_of(rival.accuracy) if rival else None),
        ),
        tag(
            "td",
            *_gain_cells(audit),
            class_="number",
            data_sort=_sort_key(value_of(audit.diagnostic_gain) if audit else None),
        ),
        tag("td", cost_text(entry.scores.usage), class_="number"),
    )


def _sort_key(value: float | None) -> str | None:
    return None if value is None else f"{value:.6f}"


def _rival_cells(audit: RunAudit | None, rival: RivalResult | None) -> Iterator[str]:
    if audit is None or rival is None:
        yield "–"
        return
    yield tag("b", as_percent(value_of(rival.accuracy) or 0.0))
    yield tag("span", rival.name, class_="under")


def _gain_cells(audit: RunAudit | None) -> Iterator[str]:
    if audit is None:
        yield "–"
        return
    value, _, interval = points_with_interval(audit.diagnostic_gain).partition(" ")
    yield tag("b", value)
    flag = () if audit.has_own_blind else (tag("span", " · no image-free run given", class_="flag"),)
    yield tag("span", interval.strip("()"), *flag, class_="under")


def _chart(
    value: float | None, ends: tuple[float, float] | None, rival: float | None, scale: _Scale, line: float
) -> Markup:
    """The row's picture; hidden from screen readers, which get the numbers next to it."""
    middle, parts = _HEIGHT / 2, [_line(scale.x(line), scale.x(line), 0, _HEIGHT, "chance")]
    if rival is not None:
        parts.append(_line(scale.x(rival), scale.x(rival), 1, _HEIGHT - 1, "rival"))
    if ends:
        parts.append(_line(scale.x(ends[0]), scale.x(ends[1]), middle, middle, "interval"))
    if value is not None:
        parts.append(Markup(f'<circle cx="{scale.x(value)}" cy="{middle}" r="4.5" class="dot"/>'))
    body = joined(parts)
    return Markup(f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">{body}</svg>')


def _line(x1: float, x2: float, y1: float, y2: float, kind: str) -> Markup:
    return Markup(f'<line x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}" class="{kind}"/>')
