"""A run as a notebook shows it: what was asked, and its progress, even while another process works on it."""

from typing import TYPE_CHECKING

from medthink.core.markup import Markup, joined, table, tag
from medthink.core.numbers import as_usd
from medthink.runs.status import read_status

if TYPE_CHECKING:
    from medthink.runs.run import Run


def run_card(run: "Run") -> Markup:
    """The run's model, task and condition, and a bar of its predictions."""
    manifest, counts = run.manifest, read_status(run.path)
    bar = tag("progress", value=counts.predicted, max=max(1, counts.predictions))
    states = ", ".join(f"{count} {state}" for state, count in counts.states.most_common()) or "none yet"
    rows = [
        ("model", manifest.model),
        ("task", manifest.task),
        ("condition", manifest.condition.label()),
        ("predictions", joined((bar, f" {counts.predicted:,} of {counts.predictions:,}: {states}"))),
        ("state", _state(counts.predicted == counts.predictions, is_running=counts.is_running)),
        ("cost", as_usd(counts.cost_usd, is_least=counts.is_least_cost)),
    ]
    return joined((tag("p", tag("b", "Run"), f" {run.path}"), table(("", ""), rows)))


def _state(is_complete: bool, *, is_running: bool) -> str:
    if is_running:
        return "running"
    return "complete" if is_complete else "unfinished: run it again to continue"
