"""`medthink score`: every score of a run, with its uncertainty."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from medthink.cli.show import console, plain, print_json, short_names, table
from medthink.core.percent import as_percent

if TYPE_CHECKING:
    from medthink.scoring.radcliq import RadCliQOptions
    from medthink.scoring.scores import MetricScore, Scores, TextScores


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark, where it is not where the run found it.")
@click.option("--split", default="test", show_default=True, help="For a file of predictions: the split it is about.")
@click.option("--slices", is_flag=True, help="Show accuracy by slice.")
@click.option("--radcliq", is_flag=True, help="Also compute RadCliQ; needs the extra radcliq.")
@click.option("--weights", type=click.Path(path_type=Path), metavar="DIR", help="RadCliQ: the folder of weights.")
@click.option("--download", is_flag=True, help="RadCliQ: fetch weights that are not there.")
@click.option(
    "--components", type=click.Path(path_type=Path), metavar="FILE", help="RadCliQ: its components, computed elsewhere."
)
@click.option(
    "--annotations",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="RadCliQ: annotations of RadGraph, made elsewhere.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def score(runs: tuple[Path, ...], data: Path | None, split: str, slices: bool, as_json: bool, **radcliq: Any) -> None:
    """Score RUNS (folders of `medthink run`, or .jsonl files in the submission format) against the references.

    Nothing is asked of any model, and the same run gives the same bytes. A run's scores are kept in its scores.json.

    \b
    Example: medthink score runs/retrieval --slices
    Example: medthink score predictions.jsonl --data bench/
    """
    from medthink.scoring.radcliq import RadCliQOptions
    from medthink.scoring.scores import to_plain

    is_wanted = radcliq.pop("radcliq")
    options = RadCliQOptions(**radcliq)
    wanted = options if is_wanted or options != RadCliQOptions() else None
    scored = [_score(path, data, split, wanted) for path in runs]
    if as_json:
        print_json([to_plain(one) for one in scored])
        return
    out = console()
    names = short_names([one.origin.name for one in scored])
    scored = [replace(one, origin=replace(one.origin, name=names[one.origin.name])) for one in scored]
    for one in scored:
        out.print(plain(f"{one.origin.name}: {one.origin.model} · {one.origin.task} · {one.origin.condition_label}"))
    _show_headlines(scored)
    _show_steps(scored)
    for one in scored:
        if slices:
            _show_slices(one)
        for note in one.notes:
            out.print(plain(f"{one.origin.name}: {note}"))


def _score(path: Path, data: Path | None, split: str, radcliq: "RadCliQOptions | None") -> "Scores":
    from medthink.scoring.material import load_all
    from medthink.scoring.score import score as score_material
    from medthink.scoring.score import score_loaded

    material = load_all([path], data, split=split)[0]
    if material.manifest is None:
        return score_material(material, radcliq=radcliq)
    return score_loaded(path, material, radcliq=radcliq)


def _show_headlines(scored: "list[Scores]") -> None:
    from medthink.scoring.scores import percent

    rows = []
    for one in scored:
        answers, usage = one.answers, one.usage
        states = answers.states if answers else {}
        rows.append(
            (
                one.origin.name,
                answers.n_cases if answers else "–",
                percent(answers.accuracy) if answers else "–",
                percent(answers.accuracy_answered) if answers else "–",
                ", ".join(f"{count} {state}" for state, count in states.items() if count) or "–",
                "–" if usage is None else _money(usage.cost_usd.value),
            )
        )
    columns = ("run", "n", "accuracy (95 %)", "of answered", "states", "cost")
    console().print(table("Scores", columns, rows, right=(1,)))
    for one in scored:
        _show_repeats(one)
    console().print()


def _show_repeats(one: "Scores") -> None:
    """Several answers to a case: how far they agree, and what their majority says."""
    from medthink.scoring.scores import percent

    answers = one.answers
    if answers is None or answers.repeats is None:
        return
    agreeing = "–" if answers.consistency is None else as_percent(answers.consistency)
    console().print(
        f"{one.origin.name}: {answers.n_predictions} answers to {answers.n_cases} cases; "
        f"two answers to a case agree in {agreeing}; majority vote {percent(answers.majority)}"
    )


def _show_steps(scored: "list[Scores]") -> None:
    """Every metric of one run; of several, the few that say most, side by side."""
    if len(scored) == 1:
        for step in scored[0].steps:
            _show_step(scored[0], step)
        return
    rows = [(one.origin.name, step.step, *_key_metrics(step)) for one in scored for step in one.steps]
    if rows:
        columns = ("run", "step", "texts", "ROUGE-L ↑", "finding F1 ↑", "conflicts ↓")
        console().print(table("Written steps, mean over cases (95 %)", columns, rows))
        console().print()


def _key_metrics(step: "TextScores") -> tuple[str, ...]:
    from medthink.scoring.scores import number

    values = {metric.metric: metric.value for metric in step.metrics}
    return (
        ", ".join(f"{count} {state}" for state, count in step.states.items()) or "none",
        *(number(values.get(name)) for name in ("rougeL", "finding_f1", "finding_conflicts")),
    )


def _show_step(one: "Scores", step: "TextScores") -> None:
    from medthink.scoring.scores import number

    states = ", ".join(f"{count} {state}" for state, count in step.states.items()) or "no images shown"
    title = f"{one.origin.name}: {step.step} ({states})"
    rows = [
        (
            metric.metric,
            _arrow(metric),
            number(metric.value) if metric.value else f"not computed: {metric.not_computed}",
        )
        for metric in step.metrics
    ]
    console().print(table(title, ("metric", "", "mean over cases (95 %)"), rows) if step.states.get("ok") else title)
    console().print()


def _show_slices(one: "Scores") -> None:
    from medthink.scoring.scores import percent

    rows = [
        (part.by, part.value, part.n, percent(part.accuracy), "small" if part.is_small else "") for part in one.slices
    ]
    console().print(
        table(f"{one.origin.name}: by slice", ("by", "slice", "n", "accuracy (95 %)", ""), rows, right=(2,))
    )
    console().print()


def _arrow(metric: "MetricScore") -> str:
    return {"higher": "↑", "lower": "↓", "neither": ""}[metric.direction]


def _money(cost_usd: float | None) -> str:
    return "unknown" if cost_usd is None else f"${cost_usd:,.2f}"
