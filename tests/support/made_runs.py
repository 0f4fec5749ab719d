"""Runs made without a model: a manifest, predictions and a ledger, as a run leaves them on disk."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.digest import digest_value, seed_from
from medthink.models.prices import Charge
from medthink.models.request import Attempt, Reply, Usage
from medthink.runs.ledger.ledger import Call, Ledger
from medthink.runs.manifest import Manifest
from medthink.runs.run import write_results
from medthink.runs.selection import Selection
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction, TwiSteps
from medthink.workflow.tasks import default_condition, prompt_versions


def make_run(
    out: Path,
    bench: Path,
    *,
    model: str = "server/made-7b",
    task: str = "answer",
    skill: float = 0.5,
    words: str | Callable[[Case], str] = "It fits",
    tokens: int | None = 200,
    usd: float | None = 0.001,
    silent: int = 0,
    **condition: Any,
) -> Path:
    """A run that is right on about `skill` of the cases and leaves the first `silent` unparsed, one call a case."""
    benchmark = Benchmark.open(bench)
    made = msgspec.structs.replace(default_condition(task), **condition)
    cases = list(benchmark["test"])
    manifest = _manifest(bench, benchmark, model, task, made)
    predictions = [
        _predict(
            case,
            sample,
            number < silent,
            task=task,
            skill=skill,
            model=model,
            condition=made,
            words=words if isinstance(words, str) else words(case),
        )
        for number, case in enumerate(cases)
        for sample in range(made.samples)
    ]
    out.mkdir(parents=True)
    _keep(out, manifest, predictions, tokens=tokens, usd=usd)
    return out


def _manifest(bench: Path, benchmark: Benchmark, model: str, task: str, condition: Condition) -> Manifest:
    split = benchmark["test"]
    return Manifest(
        benchmark=str(bench),
        fingerprint=split.fingerprint(),
        text_fingerprint=split.text_fingerprint(),
        selection=Selection(split="test"),
        task=task,
        model=model,
        condition=condition,
        condition_label=condition.label(),
        prompts={str(kind): version for kind, version in prompt_versions(task, condition).items()},
        created_at="2026-01-02T03:04:05Z",
    )


def _predict(
    case: Case, sample: int, is_silent: bool, *, task: str, skill: float, words: str, model: str, condition: Condition
) -> Prediction:
    draw = np.random.default_rng(seed_from(model, condition.digest(), case.id, sample))
    wrong = [letter for letter in case.question.options if letter != case.reference.answer]
    letter = case.reference.answer if draw.random() < skill else str(draw.choice(wrong))
    slots = tuple(image.slot for image in case.question.images)
    shared: dict[str, Any] = {"case": case.id, "split": case.split, "sample": sample, "slots": slots}
    if is_silent:
        return Prediction(**shared, state="unparsed", detail=f"no answer stated: {words}")
    if task == "discussion":
        sections = {"background": words, "imaging_perspective": f"{words} {case.reference.findings}"}
        return Prediction(**shared, state="ok", discussion=sections)
    steps = None
    if task == "twi":
        findings = tuple(f"{words} {known.caption[: 40 + 10 * sample]}" for known in case.reference.images)
        steps = TwiSteps(findings, f"{words} {case.reference.findings[:120]}", f"{words}, so {letter}.")
    return Prediction(
        **shared,
        state="ok",
        prediction=letter,
        letter_shown=letter,
        prediction_rationale=f"{words}, so {letter}.",
        prediction_twi=steps,
        parse_mode="strict",
    )


def _keep(
    out: Path, manifest: Manifest, predictions: list[Prediction], *, tokens: int | None, usd: float | None
) -> None:
    usage = None if tokens is None else Usage(input=1000, output=tokens)

    async def record(ledger: Ledger, one: Prediction) -> None:
        key = digest_value([one.case, one.sample])
        await ledger.intend(Call(key, key, one.case, manifest.task, b"{}"))
        sent = Attempt(number=1, endpoint="made", outcome="ok", is_sent=False, latency_s=0.5, usage=usage)
        ledger.note_attempt(key, sent, Charge(usd))
        await ledger.settle(key, Reply(text="…", usage=usage, model=manifest.model, latency_s=0.5))
        await ledger.save_prediction(one.case, one.sample, state=one.state, body=msgspec.json.encode(one))

    async def write() -> None:
        ledger = Ledger(out / "ledger.sqlite")
        try:
            # All at once, so that the ledger commits them together.
            await asyncio.gather(*(record(ledger, one) for one in predictions))
            write_results(out, manifest, ledger, len(predictions))
        finally:
            ledger.close()

    asyncio.run(write())
