"""Runs as logs of Inspect's and back: every call, state and figure; images only where asked for."""

import json
import shutil
from pathlib import Path

import pytest

from inspect_logs import answers, evaluate, mock_model
from lazily import Lazily
from made_runs import make_run
from medthink.bridges.inspect.import_log import import_log
from medthink.bridges.targets import TargetOptions, write_run_target
from medthink.cases.benchmark import Benchmark
from medthink.core.errors import DataError, UsageError
from medthink.runs.manifest import RunSpec
from medthink.runs.run import Run
from medthink.runs.selection import Selection
from medthink.runs.session import run_session
from medthink.scoring.submission_file import read_submission
from medthink.workflow.condition import Condition
from small_benchmark import write_benchmark

pytestmark = pytest.mark.filterwarnings("ignore")  # Inspect's and its packages' own warnings are theirs
inspect_ai, logs = Lazily("inspect_ai"), Lazily("inspect_ai.log")
datasets, scorers, solvers = (Lazily(f"inspect_ai.{part}") for part in ("dataset", "scorer", "solver"))

# What depends on when and by whom a call was made, not on what was said.
_TAKEN = ("latency_s", "cost_usd", "tokens", "calls")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("inspect") / "bench", cases=5)


def export(run, out, **options):
    write_run_target("inspect", run, out, TargetOptions(**options), lambda *_: None)
    return out


def predictions(run):
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in _TAKEN} for row in rows]


@pytest.mark.parametrize(("model", "task", "samples"), [("random", "answer", 2), ("retrieval", "twi", 1)])
def test_a_run_becomes_a_log_and_a_run_again(bench, tmp_path, model, task, samples):
    spec = RunSpec(
        benchmark=bench,
        model=f"baseline/{model}",
        out=tmp_path / "run",
        task=task,
        condition=Condition(samples=samples),
        selection=Selection(split="test", limit=3),
    )
    run = run_session(spec).run
    out = export(run.path, tmp_path / "run.eval")
    log = logs.read_eval_log(str(out), resolve_attachments=True)
    wanted = [(case, epoch + 1) for case in (100, 101, 102) for epoch in range(samples)]
    assert sorted((sample.id, sample.epoch) for sample in log.samples) == wanted
    calls = sum(run.manifest.progress.calls.values())
    assert sum(event.event == "model" for sample in log.samples for event in sample.events) == calls
    metrics = log.results.scores[0].metrics
    right = [sample.scores["letter"].value == "C" for sample in log.samples]
    assert metrics["accuracy"].value == pytest.approx(sum(right) / len(right)) and "stderr" in metrics
    taken = import_log(out, tmp_path / "again").run
    assert predictions(taken.path) == predictions(run.path)
    assert taken.manifest.model == spec.model and sum(taken.manifest.progress.calls.values()) == calls


def test_a_failed_case_is_an_error_in_the_log_and_durations_are_those_of_the_calls(bench, tmp_path):
    place = shutil.copytree(bench, tmp_path / "bench")
    next((place / "images/case00102").iterdir()).write_bytes(b"no picture")
    run = run_session(RunSpec(benchmark=place, model="baseline/random", out=tmp_path / "run")).run
    log = logs.read_eval_log(str(export(run.path, tmp_path / "run.eval")))
    errors = {sample.id: sample.error.message for sample in log.samples if sample.error}
    assert set(errors) == {102} and errors[102].startswith("image: ")
    assert (log.results.total_samples, log.results.completed_samples) == (5, 4)
    made = make_run(tmp_path / "made", bench)  # each of its calls took half a second
    log = logs.read_eval_log(str(export(made, tmp_path / "made.eval")))
    assert {(sample.total_time, sample.working_time) for sample in log.samples} == {(0.5, 0.0)}
    (event,) = log.samples[0].events
    assert (event.completed - event.timestamp).total_seconds() == 0.5


def test_a_run_without_a_finished_case_and_a_log_without_an_answer_are_told(bench, log_file, tmp_path):
    spec = RunSpec(benchmark=bench, model="baseline/random", out=tmp_path / "run", max_calls=0)
    run = run_session(spec).run
    with pytest.raises(UsageError, match="none of its cases is finished"):
        export(run.path, tmp_path / "run.eval")
    log = logs.read_eval_log(str(log_file))
    for stopped in ([], [sample.model_copy(update={"events": []}) for sample in log.samples]):
        log.samples, log.status = stopped, "cancelled"
        file = tmp_path / f"{len(stopped)}.eval"
        logs.write_eval_log(log, str(file))
        with pytest.raises(DataError, match="no sample of it is finished") as caught:
            import_log(file, tmp_path / "again")
        assert "inspect eval-retry" in caught.value.remedy and not (tmp_path / "again").exists()


def test_images_are_in_the_log_only_where_asked_for(bench, tmp_path):
    run = run_session(RunSpec(benchmark=bench, model="baseline/random", out=tmp_path / "run")).run
    plain, full = export(run.path, tmp_path / "a.eval"), export(run.path, tmp_path / "b.eval", embed_images=True)

    def count(file):
        samples = logs.read_eval_log(str(file), resolve_attachments=True).samples
        parts = [part for sample in samples for part in sample.events[0].input[-1].content]
        assert "WITHHELD" not in str([sample.events[0].input for sample in samples])
        return sum(part.type == "image" for part in parts)

    assert (count(plain), count(full)) == (0, 10)
    with pytest.raises(UsageError, match="exists"):
        export(run.path, full)


@pytest.fixture(scope="module")
def log_file(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    return Path(evaluate("answer", folder, answers, data=str(bench), epochs=2, temperature=0.5).location)


def test_a_log_of_our_task_becomes_a_full_ledger(bench, log_file, tmp_path):
    run = import_log(log_file, tmp_path / "run").run
    made = run.manifest.progress
    assert made.states == {"ok": 4, "refused": 2, "truncated": 2, "unparsed": 2}
    assert made.calls == {"done": 10} and made.is_complete
    assert run.manifest.condition == Condition(samples=2, temperature=0.5, findings="none", summary="none")
    assert run.manifest.model == "inspect/mockllm/model"
    tokens = {(one.tokens.input, one.tokens.cached, one.tokens.output) for one in Run.open(run.path).predictions()}
    assert tokens == {(100, 10, 7)}
    # The run's own command finds nothing left to ask.
    spec = RunSpec(
        benchmark=bench, model="inspect/mockllm/model", out=run.path, condition=run.manifest.condition, preflight=False
    )
    assert run_session(spec).calls_made == 0


def test_a_log_about_another_benchmark_is_refused(log_file, tmp_path):
    other = write_benchmark(tmp_path / "other", cases=4)
    with pytest.raises(UsageError, match="its texts differ"):
        import_log(log_file, tmp_path / "run", other)


def test_a_log_of_another_task_becomes_a_submission(bench, tmp_path):
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    samples = [
        datasets.Sample(input=shown.history, choices=list(shown.options.values()), target="A", id=number)
        for number, shown in ((number, case.question) for number, case in cases.items())
    ]
    task = inspect_ai.Task(
        dataset=datasets.MemoryDataset(samples), solver=solvers.multiple_choice(), scorer=scorers.choice()
    )
    model = mock_model(lambda *_: "ANSWER: C")
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", epochs=2)
    taken = import_log(Path(log.location), tmp_path / "answers.jsonl")
    assert taken.run is None and taken.answers == 10
    submission = read_submission(tmp_path / "answers.jsonl", cases)
    assert not submission.problems and {one.prediction for one in submission.predictions} == {"C"}


def test_what_is_no_log_is_named(tmp_path):
    (tmp_path / "x.eval").write_bytes(b"PK no zip")
    with pytest.raises(DataError, match="not an Inspect log"):
        import_log(tmp_path / "x.eval", tmp_path / "run")
    with pytest.raises(DataError, match="no such file"):
        import_log(tmp_path / "y.eval", tmp_path / "run")
