"""Model names, keys, base URLs, and what fits."""

import asyncio
import json
from pathlib import Path

import pytest

from medthink.core.errors import UsageError
from medthink.models import ImagePart, ModelError, Request, TextPart
from medthink.models.catalog import PROVIDERS, ApiKey, open_model, parse_model_name, resolve_target
from medthink.models.image_limits import MB, ImageLimits, check_fits
from medthink.models.inspect.model import InspectModel
from medthink.models.wires import HttpReply
from medthink.runs.manifest import RunSpec

KEYS = {name: "sk-123456789" for provider in PROVIDERS.values() for name in provider.key_variables}


def test_names_are_taken_apart_at_the_first_slash():
    model = parse_model_name("server/Qwen/Qwen3-VL-8B")
    assert (model.provider, model.name, str(model)) == ("server", "Qwen/Qwen3-VL-8B", "server/Qwen/Qwen3-VL-8B")


@pytest.mark.parametrize("spec", ["gpt-5", "openai/", "/gpt-5", "azure/x", ""])
def test_unknown_names_are_refused_with_the_known_ones(spec):
    with pytest.raises(UsageError, match="anthropic/NAME"):
        parse_model_name(spec)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_resolves_to_a_whole_wire(provider):
    target = resolve_target(f"{provider}/m", base_urls=("http://127.0.0.1:1/v1/",), env=KEYS)
    assert target.urls == ("http://127.0.0.1:1/v1",)
    assert all(callable(getattr(target.wire, name)) for name in ("encode", "decode", "sign"))
    assert any("sk-123456789" in value for value in target.wire.sign(target.key.reveal()).values())


@pytest.mark.parametrize("provider", [name for name, each in PROVIDERS.items() if each.needs_key])
def test_a_missing_key_names_the_variable(provider):
    with pytest.raises(UsageError) as caught:
        resolve_target(f"{provider}/m", env={})
    assert PROVIDERS[provider].key_variables[0] in str(caught.value)


def test_google_takes_either_variable():
    assert resolve_target("google/m", env={"GOOGLE_API_KEY": "k" * 12}).key.source == "GOOGLE_API_KEY"


def test_base_urls_argument_then_environment_then_default():
    env = KEYS | {"OPENAI_BASE_URL": "http://proxy/v1"}
    assert resolve_target("openai/m", env=KEYS).urls == ("https://api.openai.com/v1",)
    assert resolve_target("openai/m", env=env).urls == ("http://proxy/v1",)
    assert resolve_target("openai/m", base_urls=("http://mine/v1",), env=env).urls == ("http://mine/v1",)


def test_a_server_needs_no_key_but_a_place():
    assert resolve_target("server/m", base_urls=("http://a", "http://b", "http://a/"), env={}).urls == (
        "http://a",
        "http://b",
    )
    with pytest.raises(UsageError, match="--base-url"):
        resolve_target("server/m", env={})


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1/v1", "http://host:99999/v1", "localhost:8000", "ftp://x", "http://", "file:///etc/passwd",
        f"http://{'a' * 64}.org/v1", "http://a..b/v1",
    ],
)  # fmt: skip
def test_a_base_url_that_is_none_is_refused(url):
    with pytest.raises(UsageError):
        resolve_target("server/m", base_urls=(url,), env={})


def test_a_password_in_a_base_url_is_refused_and_not_repeated():
    with pytest.raises(UsageError) as caught:
        resolve_target("server/m", base_urls=("http://user:hunter2@host/v1",), env={})
    assert "hunter2" not in str(caught.value) and "MEDTHINK_SERVER_KEY" in str(caught.value)


def test_a_key_does_not_show_in_any_form():
    key = ApiKey("sk-proj-abc/def+secret", "X")
    for text in (
        "sk-proj-abc/def+secret",
        "at sk-proj-abc/def+secret.",
        "sk-proj-********cret",
        "sk-proj-abc%2Fdef%2Bsecret",
        "c2stcHJvai1hYmMvZGVmK3NlY3JldA==",
    ):
        redacted = key.redact(text)
        assert "secret" not in redacted and "sk-proj" not in redacted and "c2stcHJv" not in redacted
    assert "sk-" not in repr(key)


def picture(kilobytes=1, side=100):
    return ImagePart("image/png", "d", b"A" * (kilobytes * 1024 * 4 // 3 // 4 * 4), side, side)


LIMITS = ImageLimits(
    max_images=30, max_image_bytes=5 * MB, max_request_bytes=32 * MB, max_side=8000, crowd=20, max_crowded_side=2000
)


@pytest.mark.parametrize(
    ("images", "body_bytes", "flag"),
    [
        ([picture()] * 31, 0, "--image-share"),
        ([picture(), picture(6 * 1024)], 0, "--max-bytes"),
        ([picture(side=8001)], 0, "--max-side 8000"),
        ([picture(side=2001)] * 21, 0, "--max-side 2000"),
        ([picture()], 33 * MB, "--max-side"),
    ],
)
def test_what_does_not_fit_names_the_flag(images, body_bytes, flag):
    with pytest.raises(ModelError) as caught:
        check_fits(Request(parts=tuple(images)), body_bytes, LIMITS)
    assert caught.value.kind == "unsupported" and flag in caught.value.remedy


@pytest.mark.parametrize(
    ("spec", "images", "flag"),
    [
        ("openai/gpt-5.2", [picture()] * 501, "--image-share"),
        ("openai-chat/gpt-5.2", [picture(51 * 1024)], "--max-bytes"),
        ("openai/gpt-5.2", [picture(20 * 1024)] * 2, "--max-bytes"),
        ("anthropic/claude-opus-4-6", [picture()] * 601, "--image-share"),
        ("anthropic/claude-opus-4-6", [picture(7_700)], "--max-bytes 7864320"),
        ("anthropic/claude-opus-4-6", [picture(side=2001)] * 21, "--max-side 2000"),
        ("google/gemini-3-pro", [picture()] * 901, "--image-share"),
        ("google/gemini-3-pro", [picture(7_200)], "--max-bytes 7340032"),
    ],
)
def test_what_a_provider_does_not_take_is_refused_before_it_is_sent(spec, images, flag):
    model = open_model(spec, env=KEYS)
    with pytest.raises(ModelError) as caught:
        asyncio.run(model.generate(Request(parts=tuple(images), max_tokens=100)))
    assert (caught.value.kind, caught.value.attempts) == ("unsupported", 0)
    assert flag in caught.value.remedy


def test_a_limit_of_half_a_megabyte_is_not_rounded_away():
    with pytest.raises(ModelError, match=r"has 7\.6 MB, but this model accepts at most 7\.5 MB"):
        open_model("anthropic/m", env=KEYS).preflight(Request(parts=(picture(7_750),), max_tokens=1))


def test_what_fits_passes():
    check_fits(Request(parts=(TextPart("t"), *[picture(side=2001)] * 20)), 32 * MB, LIMITS)
    check_fits(Request(parts=tuple([picture(side=2000)] * 30)), 0, LIMITS)
    check_fits(Request(parts=(ImagePart("image/png", "d", b""),)), 0, LIMITS)
    check_fits(Request(parts=tuple([picture(side=9999)] * 99)), 10**12, ImageLimits())


def test_a_password_in_a_url_that_is_none_is_not_repeated():
    with pytest.raises(UsageError) as caught:
        resolve_target("server/m", base_urls=("http://user:hunter2@host:99999/v1",), env={})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://host/v1?api_key=hunter2", "https://host/v1#hunter2", "ftp://host?k=hunter2"])
def test_a_key_in_a_base_url_is_refused_before_anything_is_written(url):
    for refused in (
        lambda: resolve_target("server/m", base_urls=(url,), env={}),
        lambda: RunSpec(benchmark=Path("b"), model="server/m", base_urls=(url,)),
        lambda: InspectModel("openai/m", base_urls=(url,)),
    ):
        with pytest.raises(UsageError) as caught:
            refused()
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("secret", ["sk-12345678\n9", "sk-1234\0", "sk-é"])
def test_a_key_that_is_none_is_refused_in_words_without_it(secret):
    with pytest.raises(UsageError, match="OPENAI_API_KEY contains") as caught:
        resolve_target("openai/m", env={"OPENAI_API_KEY": secret})
    assert "sk-" not in str(caught.value)


def test_a_key_that_a_server_echoes_is_in_no_part_of_the_reply():
    secret = "sk-proj-0123456789abcdef"
    model = open_model("openai-chat/m", env={"OPENAI_API_KEY": secret})
    message = {"content": f"your key {secret}", "reasoning_content": secret}
    body = {"choices": [{"message": message, "finish_reason": secret}], "model": secret}
    reply = model.read(HttpReply(200, {}, json.dumps(body).encode()), wants_json=False)
    assert secret not in repr(reply) and reply.text == "your key [key]"
    # A short one may be a word of the answer.
    short = open_model("server/m", base_urls=("http://a",), env={"MEDTHINK_SERVER_KEY": "none"})
    body["choices"][0]["message"] = {"content": "none of these"}
    assert short.read(HttpReply(200, {}, json.dumps(body).encode()), wants_json=False).text == "none of these"


def test_a_models_name_from_a_server_is_one_line():
    body = {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}], "model": "m\n\x1b[31m" + "x" * 900}
    model = open_model("server/m", base_urls=("http://a",), env={})
    name = model.read(HttpReply(200, {}, json.dumps(body).encode()), wants_json=False).model
    assert name.isprintable() and len(name) <= 300
