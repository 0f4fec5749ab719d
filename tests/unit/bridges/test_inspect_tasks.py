"""Our tasks under `inspect eval`: our prompts and parsers, Inspect's model, epochs, groups; states kept."""

import pytest

from inspect_logs import answers, evaluate
from lazily import Lazily
from medthink.cases.benchmark import Benchmark
from medthink.workflow.prompts import load_prompts
from medthink.workflow.view import NO_CUES
from small_benchmark import write_benchmark

pytestmark = pytest.mark.filterwarnings("ignore")  # Inspect's and its packages' own warnings are theirs
schemas = Lazily("inspect_ai.util")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("inspect") / "bench", cases=5)


@pytest.fixture(scope="module")
def log(bench, tmp_path_factory):
    return evaluate("answer", tmp_path_factory.mktemp("logs"), answers, data=str(bench), epochs=2)


def test_every_state_is_kept_and_only_a_right_letter_counts(log):
    states = {(sample.id, sample.epoch): sample.scores["letter"] for sample in log.samples}
    assert len(states) == 10
    said = {case: (states[case, 1].value, states[case, 1].metadata["state"]) for case in range(100, 105)}
    assert said == {
        100: ("C", "ok"),
        101: ("I", "ok"),
        102: ("N", "unparsed"),
        103: ("N", "refused"),
        104: ("N", "truncated"),
    }
    assert states[100, 2].metadata["prediction"]["sample"] == 1


def test_metrics_have_clustered_errors_and_groups(log):
    metrics = {metric.name: metric.value for metric in log.results.scores[0].metrics.values()}
    assert metrics["accuracy"] == pytest.approx(0.2)
    assert "stderr" in metrics and metrics["longitudinal: no"] == pytest.approx(0.2)
    assert {"images per case: 1–4", "ICD chapter: Chapter II - Neoplasms"} <= set(metrics)


def test_what_is_sent_is_our_prompt_with_the_images_in_their_places(log, bench):
    case = Benchmark.open(bench).case(100)
    event = next(event for event in log.samples[0].events if event.event == "model")
    prompt = load_prompts("default").answer(case.question, NO_CUES)
    assert event.input[0].text == prompt.system
    kinds = ["text" if isinstance(part, str) else "image" for part in prompt.parts]
    assert [part.type for part in event.input[1].content] == kinds
    assert event.config.response_schema.name == prompt.schema.name
    assert "WITHHELD" not in str(event.input)


def test_a_staged_task_asks_as_often_as_in_a_run(bench, tmp_path):
    def say(text, images):
        return '{"differential_reasoning": "d", "answer": "A", "explanation": "e", "summary": "s", "findings": "f"}'

    log = evaluate("twi", tmp_path, say, data=str(bench), limit=1)
    kinds = [e.input[-1].metadata["medthink"]["kind"] for e in log.samples[0].events if e.event == "model"]
    assert sorted(kinds) == ["differential", "findings", "findings", "summary"]
    steps = log.samples[0].scores["letter"].metadata["prediction"]["prediction_twi"]
    assert steps["step1_per_image_findings"] == ["f", "f"]


def test_a_discussion_is_whole_or_says_why_not(bench, tmp_path):
    log = evaluate("discussion", tmp_path, lambda *_: "no sections", data=str(bench), limit=2)
    score = log.samples[0].scores["complete"]
    assert score.value == 0.0 and score.metadata["state"] == "unparsed"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"condition": {"image_shar": 0.5}}, "image_shar"),
        ({"condition": {"samples": 3}}, "epochs"),
        ({"split": "nowhere"}, "nowhere"),
    ],
)
def test_bad_arguments_are_named(bench, tmp_path, args, problem):
    from inspect_ai._util.error import PrerequisiteError

    with pytest.raises(PrerequisiteError, match=problem):
        evaluate("answer", tmp_path, answers, data=str(bench), args=args)


def test_schemas_pass_through_inspect_unchanged(bench):
    question = Benchmark.open(bench).case(100).question
    prompts = load_prompts("default")
    made = [prompts.answer(question, NO_CUES), prompts.findings(question, question.images[0])]
    made += [prompts.summary(question, ("f", "f")), prompts.differential(question, ("f", "f"), "s")]
    made += [prompts.think_with_images(question), prompts.discussion(question, NO_CUES)]
    for prompt in made:
        definition = prompt.schema.definition
        passed = schemas.JSONSchema.model_validate(definition).model_dump(exclude_none=True)
        assert passed == definition, prompt.kind
