"""What `run --until-known` and `compare --sequential` show: the claim, what is known, and what was saved."""

from pathlib import Path
from typing import TYPE_CHECKING

from medthink.cli.show import console, table
from medthink.core.errors import UsageError
from medthink.core.numbers import as_percent, as_points, as_usd

if TYPE_CHECKING:
    from medthink.runs.spec import RunSpec
    from medthink.scoring.sequential import KnownStatement, StopWhenKnown
    from medthink.stats.sequence import WatchClaim

_CLAIMS = {
    "these": "these {n} cases: what the finished run would show",
    "such": "such cases: the population these were drawn from",
}


def open_rule(spec: "RunSpec", goal: str, claim: "WatchClaim") -> "StopWhenKnown":
    """The stopping rule for a goal: a half-width in points, or a finished run or file to compare with."""
    from medthink.runs.selection import read_selected
    from medthink.scoring.material import load_all, refuse_partial
    from medthink.scoring.sequential import StopWhenKnown, case_rights
    from medthink.workflow.tasks import has_letters

    if not has_letters(spec.task, spec.condition):
        raise UsageError("this task gives no letters, so there is nothing to watch", remedy="leave out --until-known")
    held = read_selected(spec.benchmark, spec.selection)
    half_width, rival = _read_points(goal), None
    if half_width is None:
        rival = case_rights(refuse_partial(load_all([Path(goal)], spec.benchmark, split=spec.selection.split)[0]))
    return StopWhenKnown(
        held.cases,
        held.text_fingerprint,
        samples=spec.condition.samples,
        claim=claim,
        half_width=half_width,
        rival=rival,
    )


def _read_points(goal: str) -> float | None:
    try:
        points = float(goal)
    except ValueError:
        return None
    if not 0 < points < 50:
        raise UsageError(f"--until-known {goal}", remedy="give a half-width between 0 and 50 points, or a run")
    return points / 100


def show_known(statements: "list[KnownStatement]") -> None:
    """The statements as a table, with the claims in words."""
    rows = [
        (
            one.about,
            one.claim,
            f"{one.seen} of {one.n_cases}",
            _interval(one),
            one.verdict.removeprefix("the "),
            "–" if one.known_after is None else f"{one.known_after}",
            _saved(one),
        )
        for one in statements
    ]
    columns = ("what", "claim", "cases", "95 % interval, valid at every look", "known", "after", "cases saved")
    out = console()
    out.print(table("Watched in a random order", columns, rows))
    for claim in dict.fromkeys(one.claim for one in statements):
        out.print(f"{claim}: {_CLAIMS[claim].format(n=statements[0].n_cases)}.")
    out.print(
        "These intervals stay valid however often one looks; Wilson's and McNemar's do not once a run is stopped early."
    )


def _saved(one: "KnownStatement") -> str:
    if one.known_after is None:
        return "–"
    money = "" if one.saved_usd is None else f", {as_usd(one.saved_usd)}"
    return f"{one.saved_cases} ({as_percent(one.saved_cases / one.n_cases, 0)}){money}"


def _interval(one: "KnownStatement") -> str:
    if one.low is None or one.high is None:
        return "verdict only"
    if one.is_difference:
        return f"{as_points(one.low)} to {as_points(one.high)}"
    return f"{one.low * 100:.1f} to {one.high * 100:.1f}"
