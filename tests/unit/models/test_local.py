"""A model in this process: several images, its chat template, truncation seen, nothing changed in silence."""

import asyncio
import io

import pytest
from PIL import Image

from medthink.core.errors import UsageError
from medthink.models import ImagePart, ModelError, Request, Schema, TextPart
from medthink.models.local import LocalModel
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from processes import finish, medthink
from small_benchmark import write_benchmark
from tiny_idefics import TEMPLATE, build_idefics

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's and transformers' own warnings are theirs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_idefics(tmp_path_factory.mktemp("local") / "tiny", says="(B)")


@pytest.fixture(scope="module")
def babbler(tmp_path_factory):
    return build_idefics(tmp_path_factory.mktemp("local") / "babbler")


def picture(shade):
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), (shade, shade, 0)).save(stream, "PNG")
    return ImagePart.from_bytes(stream.getvalue(), "image/png", width=40, height=30)


def request(*parts, **settings):
    asked = tuple(TextPart(part) if isinstance(part, str) else part for part in parts or ("Which?",))
    return Request(**({"system": "You read images.", "parts": asked, "max_tokens": 8} | settings))


def ask(folder, *parts, **settings):
    return asyncio.run(LocalModel(str(folder)).generate(request(*parts, **settings)))


@pytest.mark.parametrize("images", [0, 1, 2, 3])
def test_it_answers_with_any_number_of_images_and_counts_their_tokens(folder, images):
    shown = [part for place in range(images) for part in (f"Image {place}:", picture(60 * place))]
    reply = ask(folder, *shown, "Which?")
    assert (reply.text, reply.stop, reply.model) == ("(B)", "end", "tiny")
    assert reply.usage.output == 4, "three signs and the end"
    plain = ask(folder, *(part for part in shown if isinstance(part, str)), "Which?")
    # Each image is four tokens between two marks, one of them shared with its neighbour's text.
    assert reply.usage.input >= plain.usage.input + 5 * images


def test_images_and_their_order_reach_the_model(babbler):
    first, second = picture(0), picture(255)
    replies = [ask(babbler, *parts, "Which?").text for parts in ((first, second), (second, first), (first, first))]
    assert len(set(replies)) == 3
    assert ask(babbler, first, second, "Which?").text == replies[0], "the same again without sampling"


def test_a_reply_that_is_cut_off_says_so(babbler, folder):
    assert ask(babbler, "Which?", max_tokens=5).stop == "truncated"
    assert ask(babbler, "Which?", max_tokens=5).usage.output == 5
    assert ask(folder, "Which?", max_tokens=4).stop == "end"


def test_a_seed_makes_samples_repeatable_and_a_temperature_makes_them_differ(babbler):
    hot = {"temperature": 1.0, "max_tokens": 20}
    assert ask(babbler, seed=1, **hot).text == ask(babbler, seed=1, **hot).text
    assert len({ask(babbler, seed=seed, **hot).text for seed in range(3)}) > 1
    assert ask(babbler, temperature=0.0).text == ask(babbler, temperature=0.0, seed=5).text


@pytest.mark.parametrize("text", ["an <image> inside", "<end_of_utterance>", "<fake_token_around_image>"])
def test_a_text_with_a_sign_of_the_model_is_refused(folder, text):
    with pytest.raises(ModelError, match="a control token") as caught:
        ask(folder, picture(9), text)
    assert caught.value.kind == "unsupported"


@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"effort": "low"}, "--effort"), ({"schema": Schema("x", {"type": "object"})}, "--no-schema")],
)
def test_settings_that_cannot_be_kept_to_are_refused(folder, settings, flag):
    with pytest.raises(ModelError) as caught:
        ask(folder, **settings)
    assert caught.value.kind == "unsupported" and flag in caught.value.remedy


def test_a_template_that_takes_no_system_prompt_is_named(tmp_path):
    strict = "{{ raise_exception('no system role') if messages[0]['role'] == 'system' }}" + TEMPLATE
    folder = build_idefics(tmp_path / "strict", template=strict, says="(B)")
    with pytest.raises(ModelError, match="no system role"):
        ask(folder)
    assert ask(folder, system="").text == "(B)"


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no model found"):
        LocalModel(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(UsageError, match="cannot be loaded"):
        ask(tmp_path)


def test_a_run_by_a_local_model_is_like_any_other(tmp_path, folder):
    bench = write_benchmark(tmp_path / "bench", cases=3)
    spec = RunSpec(
        benchmark=bench,
        model=f"local/{folder}",
        out=tmp_path / "run",
        condition=Condition(use_schema=False, max_tokens=8),
    )
    session = run_session(spec)
    predictions = list(session.run.predictions())
    assert [(one.state, one.prediction) for one in predictions] == [("ok", "B")] * 3
    assert all(one.tokens.output == 4 and one.latency_s > 0 for one in predictions)
    progress = session.run.manifest.progress
    assert progress.attempts == 0 and progress.uncounted_replies == 0, "nothing leaves this machine"
    assert progress.reported_models == ("tiny",) and progress.image_doubts >= 0
    assert run_session(spec).calls_made == 0


def test_the_command_demands_no_schema_and_takes_no_server(tmp_path, folder):
    bench = write_benchmark(tmp_path / "bench", cases=2)
    words = ("run", bench, "--model", f"local/{folder}", "--out", tmp_path / "run")
    for more, remedy in (((), "add --no-schema"), (("--base-url", "http://x/v1"), "leave it out")):
        code, _, err = finish(medthink(*words, *more))
        assert code == 2 and remedy in err
    code, _, err = finish(medthink("run", bench, "--model", "local/nowhere", "--no-schema", "--out", tmp_path / "run"))
    assert code == 2 and "nowhere: no model found" in err
