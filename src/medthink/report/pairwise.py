"""Every run against every other: the difference in points, and whether it is more than chance."""

from medthink.core.markup import Markup, tag
from medthink.core.numbers import as_points
from medthink.report.entries import Group, ends_of, value_of
from medthink.stats.ranks import RankedPair

_MEANING = (
    "The run of the row minus the run of the column, in points of accuracy. ▲ and ▼: better and worse; ≈: not "
    "distinguishable on these cases. All pairs are tested as one family: the chance that any two equal runs are called "
    "different is at most 5 %."
)
MOST_RUNS = 24


def pairwise_markup(group: Group) -> Markup | None:
    """A matrix of the ranked runs, best first; None if there are fewer than two, or too many to read."""
    ranked = list(group.ranked())
    if group.ranking is None or not 2 <= len(ranked) <= MOST_RUNS:
        return None
    pairs = {(pair.a, pair.b): (pair, 1) for pair in group.ranking.pairs}
    pairs |= {(pair.b, pair.a): (pair, -1) for pair in group.ranking.pairs}
    numbers = [tag("th", str(number), scope="col", title=entry.label) for number, (entry, _) in enumerate(ranked, 1)]
    head = tag("tr", tag("th", "Run", scope="col"), *numbers)
    rows = (
        tag(
            "tr",
            tag("th", f"{number} {entry.label}", scope="row"),
            *(_cell(*pairs[place.run, other.run]) if place is not other else tag("td", "") for _, other in ranked),
        )
        for number, (entry, place) in enumerate(ranked, 1)
    )
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="pairwise")
    box = tag("div", table, class_="box", role="region", aria_label="Differences between runs", tabindex=0)
    return tag("div", box, tag("p", _MEANING, class_="soft small"))


def _cell(pair: RankedPair, sign: int) -> Markup:
    value, ends = value_of(pair.difference), ends_of(pair.difference)
    if value is None:
        return tag("td", "–", class_="same")
    kind, mark = "same", "≈"
    if pair.is_different:
        kind, mark = ("better", "▲") if value * sign > 0 else ("worse", "▼")
    told = ""
    if ends:
        low, high = sorted(end * sign for end in ends)
        told = f"{as_points(low)} to {as_points(high)} points"
    return tag("td", f"{as_points(value * sign)} ", tag("span", mark, class_="mark"), class_=kind, title=told or None)
