"""Output of `medthink run`: progress, an estimate, the prompts."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cases.benchmark import Benchmark
from medthink.cli.output import console, describe_states, estimate_rows, plain, print_json, print_table
from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.core.jsonio import encode_json
from medthink.core.numbers import as_percent, as_saved, as_usd, count_of
from medthink.models.request import ImagePart, Request, TextPart
from medthink.runs.ledger.queries import LedgerQueries
from medthink.runs.manifest import Manifest, Progress, RunSpec
from medthink.runs.selection import count_cases, select_cases
from medthink.workflow.ask import Prompt

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.batches.jobs import Batch
    from medthink.runs.dry_run import DryRun


def show_progress(run: Path, manifest: Manifest) -> None:
    """The table at the end of a session."""
    assert manifest.progress is not None
    show_progress_of(run, manifest, manifest.progress)


def show_estimate(spec: RunSpec, transport: "Transport", *, as_json: bool) -> None:
    """Print the estimated calls, tokens and cost of the run, or the rest of it."""

    from medthink.runs.dry_run import estimate

    made = estimate(spec, transport=transport)
    if as_json:
        print_json(to_builtins(made))
        return
    left = " left" if made.done else ""
    rows = [
        *([("already done", _done(made.done))] if made.done else ()),
        (f"cases{left}", f"{made.cases:,}"),
        *estimate_rows(made, left),
        *_say_cache(made),
        *([("images at the provider", _say_detail(made))] if made.detail else []),
    ]
    console().print(print_table(f"{spec.model} · {spec.task} · {spec.condition.label()}", ("", ""), rows))


def _say_cache(made: "DryRun") -> list[tuple[str, str]]:
    """What the provider's cache is expected to save, or would save without schemas."""
    if made.cached_tokens:
        told = f"{made.cached_tokens:,} of the input tokens read from it; saves {as_saved(made.saved_usd)}"
        return [("cache, estimated", f"{told}, which the cost above counts")]
    if made.could_save_usd > 0:
        why = "each step has a schema of its own, and a cache is of one schema"
        return [("cache", f"none: {why}; --no-schema would save about {as_usd(made.could_save_usd)}")]
    return []


def _say_detail(made: "DryRun") -> str:
    shrunk = f"; {count_of(made.shrunk, 'image')} of {made.images:,} will be shrunk" if made.shrunk else ""
    return made.detail + shrunk


def show_prompts(spec: RunSpec) -> None:
    """Print every request of the first case, exactly as it would be sent; images by digest."""

    from medthink.runs.dry_run import DryRunCallMaker, dry_run
    from medthink.runs.engine import run_to_end

    benchmark = Benchmark.open(spec.benchmark)
    if not count_cases(benchmark, spec.selection):
        raise UsageError("this shard contains no cases", remedy="choose another --shard")
    first = next(select_cases(benchmark, spec.selection))
    alike: dict[str, list[tuple[Prompt, Request]]] = {}

    def witness(prompt: Prompt, request: Request) -> None:
        alike.setdefault(_common_content(prompt, request), []).append((prompt, request))

    desk = DryRunCallMaker(spec.model, witness, filler="⟨earlier reply⟩")
    run_to_end(dry_run([first], spec, desk, benchmark=benchmark))
    for group in alike.values():
        _show_requests(group[0][0].kind, [request for _, request in group])


def _common_content(prompt: Prompt, request: Request) -> str:
    """A request's content without its one image and sample number, so that similar requests can be grouped."""
    content = request.content()
    parts = [part[:1] if part[0] == "image" else part for part in content["parts"]]
    shared = {"sample": 0, "parts": parts} if len(request.images) == 1 else {"sample": 0}
    return digest_value([prompt.kind, content | shared])


def _show_requests(kind: str, requests: list[Request]) -> None:
    """Requests that differ only in one image, shown as one with each of their images."""
    request = requests[0]
    images = {image.digest: image for one in requests for image in one.images} if len(request.images) == 1 else {}
    samples = len({one.sample for one in requests})
    times = [f"for each of {len(images)} images"] if len(images) > 1 else []
    times += [f"{samples} times"] if samples > 1 else []
    click.echo(f"──── {' · '.join([kind, *times])} " + "─" * 60)
    click.echo(f"[system]\n{plain(request.system)}\n\n[user]")
    for part in request.parts:
        if isinstance(part, TextPart):
            click.echo(plain(part.text))
        else:
            click.echo(" or\n".join(map(_image, images.values() or [part])))
    if request.schema is not None:
        click.echo(f"\n[schema {request.schema.name}] {encode_json(request.schema.definition).decode()}")
    settings = {name: getattr(request, name) for name in ("max_tokens", "temperature", "seed", "effort")}
    if given := [f"{name} {value}" for name, value in settings.items() if value is not None]:
        click.echo(f"\n[settings] {', '.join(given)}")
    click.echo()


def _image(image: ImagePart) -> str:
    return (
        f"[{image.media_type}, {image.width}×{image.height}, {image.size_bytes:,} bytes, SHA-256 {image.digest[:12]}…]"
    )


def show_progress_of(run: Path, manifest: Manifest, progress: Progress) -> None:
    """Print the table of a run that is not in progress: calls, cost and failures."""
    reported = ", ".join(progress.reported_models) or "–"
    rows = [
        *about_run(manifest, f" (reported: {reported})"),
        (
            "cases" if manifest.condition.samples == 1 else "cases × samples",
            f"{sum(progress.states.values()):,} of {progress.cases:,} done: {describe_states(progress.states)}",
        ),
        ("calls", f"{describe_states(progress.calls)}; {progress.attempts:,} attempts sent"),
        ("cost", _say_cost(progress)),
        *say_cache_used(run),
        ("state", _say_state(progress)),
        *([("stopped by", f"{progress.stopped_by} → {progress.remedy}")] if progress.stopped_by else []),
        *say_jobs_waiting(run),
        *say_failures(run),
    ]
    if progress.image_doubts:
        of = f"{progress.image_doubts:,} of {progress.image_replies:,} replies"
        rows.append(
            ("caution", f"{of} report too few input tokens for their images: the server may be ignoring images")
        )
    console().print(print_table(str(run), ("", ""), rows))


def about_run(manifest: Manifest, note: str = "") -> list[tuple[str, str]]:
    """The model, the task and the condition, in rows of a table."""
    return [
        ("model", f"{manifest.model}{note}"),
        ("task and condition", f"{manifest.task} · {manifest.label()}"),
    ]


def _say_cost(progress: Progress) -> str:
    cost = as_usd(progress.cost_usd, is_least=progress.is_least_cost)
    if not progress.is_least_cost:
        return cost
    attempts = count_of(progress.uncounted_replies, "attempt")
    return f"{cost}: the tokens of {attempts} were not counted, so their maximum cost is included"


def say_cache_used(run: Path) -> list[tuple[str, str]]:
    """The share of the input that came from the provider's cache or went into it, and what that saved."""
    with closing(LedgerQueries.open(run)) as records:
        used, saved = records.tokens(), records.saved_usd()
    written = used.written + used.written_long
    if not (used.cached or written):
        return []
    read, put = (as_percent(tokens / used.input, 0) for tokens in (used.cached, written))
    told = "" if saved is None else f"; saved {as_saved(saved)}"
    return [("cache", f"{read} of the input tokens read from it, {put} written to it{told}")]


def _say_state(progress: Progress) -> str:
    again = {"complete": "", "unfinished": ": run the same command to continue"}
    return progress.word + again.get(progress.word, ": the same command retries what failed")


def _done(progress: Progress) -> str:
    """The cases that will not be asked again; failed ones will."""
    states = {state: count for state, count in progress.states.items() if state != "failed"}
    cost = as_usd(progress.cost_usd, is_least=progress.is_least_cost)
    made = f"{sum(states.values()):,} of {progress.cases:,} predictions: {describe_states(states)}"
    return f"{made}; {count_of(progress.calls.get('done', 0), 'call')}; cost {cost}"


def read_jobs(run: Path) -> "list[Batch]":
    """The batches of a run, as its ledger records them."""
    from medthink.runs.batches.jobs import read_batches

    records = LedgerQueries.open(run)
    batches = read_batches(records.connection)
    records.close()
    return batches


def say_jobs_waiting(run: Path) -> list[tuple[str, str]]:
    """Print the batches that have not ended, one line each."""
    waiting = [one for one in read_jobs(run) if one.state != "ended"]
    return [
        (
            "batch",
            f"{one.job or 'not sent yet'}: {count_of(one.calls, 'call')}, {one.detail or one.state}, "
            f"since {one.planned_at}",
        )
        for one in waiting
    ]


def say_failures(run: Path) -> list[tuple[str, str]]:
    """Print why calls failed, one line per kind."""
    records = LedgerQueries.open(run)
    rows = [("failed calls", f"{count:,} × {kind}: {detail}") for kind, detail, count in records.failures()]
    records.close()
    return rows and [*rows, ("", "the same command retries them")]
