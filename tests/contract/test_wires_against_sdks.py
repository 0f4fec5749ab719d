"""The wires against the official SDKs: their types accept our bodies, and their clients send the same."""

import asyncio
import base64
import importlib.util
import inspect
import json
import re
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pydantic
import pytest
from anthropic.types import OutputConfigParam
from anthropic.types.message_create_params import MessageCreateParamsBase
from google.genai import types
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.service_tier import ServiceTier
from openai.types.shared import ReasoningEffort

from medthink.models import Effort, ImagePart, Request, Schema, TextPart
from medthink.models.catalog import open_model, resolve_target
from medthink.models.wires import anthropic, gemini, openai_chat, openai_responses

pytestmark = pytest.mark.filterwarnings("ignore")  # the SDKs' own warnings are theirs


def load_fault_server():
    path = Path(__file__).parents[1] / "faults" / "fault_server.py"
    spec = importlib.util.spec_from_file_location("fault_server_for_contracts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FaultServer


FaultServer = load_fault_server()

DEFINITION = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["A", "B"]}, "why": {"type": "string"}},
    "required": ["answer", "why"],
    "additionalProperties": False,
}
FILES = [(b"\xff\xd8\xff" + bytes(range(256)) * 5, "image/jpeg"), (b"\x89PNG" + bytes(range(200)) * 7, "image/png")]
IMAGES = [ImagePart.from_bytes(data, media_type) for data, media_type in FILES]
BASE64 = [base64.b64encode(data).decode() for data, _ in FILES]
SYSTEM = 'You read "images".\nℹ Be exact.'
ENV = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "sk-test")
PARTS = (TextPart("History: çough"), IMAGES[0], TextPart("then"), IMAGES[1], TextPart("Which one?"))
SCHEMA = Schema("reading", DEFINITION)


def request(**fields):
    return Request(**({"system": SYSTEM, "parts": PARTS, "schema": SCHEMA, "max_tokens": 2_000} | fields))


def openai_responses_call(url, model, asked):
    import openai

    client = openai.OpenAI(api_key="sk-test", base_url=url + "/v1", max_retries=0)
    extra = {"temperature": asked.temperature} if asked.temperature is not None else {}
    if asked.effort:
        extra["reasoning"] = {"effort": asked.effort} | ({"summary": "auto"} if asked.effort != "none" else {})
    if asked.schema:
        extra["text"] = {"format": {"type": "json_schema", "name": "reading", "schema": DEFINITION, "strict": True}}
    content = [
        {"type": "input_image", "detail": "high", "image_url": part[1]}
        if part[0] == "image"
        else {"type": "input_text", "text": part[1]}
        for part in data_url_parts()
    ]
    client.responses.create(
        model=model, store=False, instructions=SYSTEM, max_output_tokens=asked.max_tokens,
        input=[{"role": "user", "content": content}], **extra,
    )  # fmt: skip


def openai_chat_call(url, model, asked, *, limit="max_completion_tokens", detail="high"):
    import openai

    client = openai.OpenAI(api_key="sk-test", base_url=url + "/v1", max_retries=0)
    extra = {limit: asked.max_tokens}
    for name, value in (("temperature", asked.temperature), ("seed", asked.seed), ("reasoning_effort", asked.effort)):
        if value is not None:
            extra[name] = value
    if asked.schema:
        extra["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reading", "schema": DEFINITION, "strict": True},
        }
    content = [
        {"type": "image_url", "image_url": {"url": part[1]} | ({"detail": detail} if detail else {})}
        if part[0] == "image"
        else {"type": "text", "text": part[1]}
        for part in data_url_parts()
    ]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    client.chat.completions.create(model=model, messages=messages, **extra)


def server_chat_call(url, model, asked):
    openai_chat_call(url, model, asked, limit="max_tokens", detail=None)


def anthropic_call(url, model, asked):
    import anthropic

    client = anthropic.Anthropic(api_key="sk-test", base_url=url, max_retries=0)
    extra, config = {}, {}
    if asked.effort == "none":
        extra["thinking"] = {"type": "disabled"}
    elif asked.effort and model == "claude-haiku-4-5":
        extra["thinking"] = {"type": "enabled", "budget_tokens": 2_048}
    elif asked.effort:
        extra["thinking"] = {"type": "adaptive", "display": "summarized"}
        config["effort"] = asked.effort
    if asked.schema:
        config["format"] = {"type": "json_schema", "schema": DEFINITION}
    if config:
        extra["output_config"] = config
    content = []
    for part in PARTS:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        else:
            source = {"type": "base64", "media_type": part.media_type, "data": part.base64.decode()}
            content.append({"type": "image", "source": source, "transformations": {"oversized_image": "error"}})
    client.messages.create(
        model=model, max_tokens=asked.max_tokens, system=SYSTEM,
        messages=[{"role": "user", "content": content}], **extra,
    )  # fmt: skip


def gemini_call(url, model, asked):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="sk-test", http_options=types.HttpOptions(base_url=url))
    thinking = None
    if asked.effort and model.startswith("gemini-2.5"):
        thinking = types.ThinkingConfig(include_thoughts=True, thinking_budget=1_024)
    elif asked.effort:
        thinking = types.ThinkingConfig(include_thoughts=True, thinking_level=asked.effort.upper())
    parts = [
        types.Part(text=part.text)
        if isinstance(part, TextPart)
        else types.Part.from_bytes(data=base64.b64decode(part.base64), mime_type=part.media_type)
        for part in PARTS
    ]
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM, max_output_tokens=asked.max_tokens, temperature=asked.temperature, seed=asked.seed,
        response_mime_type="application/json" if asked.schema else None,
        response_json_schema=DEFINITION if asked.schema else None, thinking_config=thinking,
    )  # fmt: skip
    client.models.generate_content(model=model, contents=[types.Content(role="user", parts=parts)], config=config)


def data_url_parts():
    for part in PARTS:
        if isinstance(part, TextPart):
            yield "text", part.text
        else:
            yield "image", f"data:{part.media_type};base64,{part.base64.decode()}"


CASES = [
    ("openai/gpt-5.2", request(effort="xhigh"), openai_responses_call),
    ("openai/gpt-5.2", request(effort="none", temperature=0.2), openai_responses_call),
    ("openai/gpt-4o", request(temperature=0.0, schema=None), openai_responses_call),
    ("openai-chat/gpt-4.1", request(temperature=0.7, seed=0), openai_chat_call),
    ("openai-chat/gpt-5-mini", request(effort="minimal", schema=None), openai_chat_call),
    ("server/qwen/qwen3-vl", request(temperature=0.0, seed=5), server_chat_call),
    ("anthropic/claude-opus-4-6", request(effort="high"), anthropic_call),
    ("anthropic/claude-opus-4-6", request(effort="none"), anthropic_call),
    ("anthropic/claude-haiku-4-5", request(effort="low", max_tokens=4_000), anthropic_call),
    ("anthropic/claude-sonnet-5", request(schema=None), anthropic_call),
    ("google/gemini-3-pro", request(effort="high", temperature=1.0, seed=7), gemini_call),
    ("google/gemini-2.5-flash", request(effort="low"), gemini_call),
    ("google/gemini-2.5-pro", request(schema=None), gemini_call),
]
IDS = [f"{spec}-{number}" for number, (spec, _, _) in enumerate(CASES)]


def base_url(server_url, spec):
    return server_url + ("" if spec.startswith(("anthropic", "google")) else "/v1")


@pytest.mark.parametrize(("spec", "asked", "sdk_call"), CASES, ids=IDS)
def test_the_official_client_sends_the_same_request(spec, asked, sdk_call):
    async def scenario():
        async with FaultServer() as server:
            async with open_model(spec, base_urls=(base_url(server.url, spec),), env=ENV) as model:
                reply = await model.generate(asked)
            await asyncio.to_thread(sdk_call, server.url, spec.partition("/")[2], asked)
            return reply, server.records

    reply, (ours, theirs) = asyncio.run(scenario())
    assert ours["path"] == theirs["path"]
    assert ours["body"] == (spell_in_camel_case(theirs["body"]) if spec.startswith("google") else theirs["body"])
    assert ours["images"] == theirs["images"] == [image.digest for image in IMAGES]
    for name in ("authorization", "x-api-key", "x-goog-api-key", "anthropic-version"):
        if spec.startswith("server"):
            continue
        assert ours["headers"].get(name) == theirs["headers"].get(name)
    assert reply.stop == "end"


def spell_in_camel_case(value):
    """Google's client spells some fields `like_this`, which its servers take for `likeThis`; we spell all one way."""
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda m: m[1].upper(), k): spell_in_camel_case(v) for k, v in value.items()}
    return [spell_in_camel_case(part) for part in value] if isinstance(value, list) else value


def params_type(spec):
    if spec.startswith("openai/"):
        from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

        return ResponseCreateParamsNonStreaming
    if spec.startswith(("openai-chat/", "server/")):
        from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

        return CompletionCreateParamsNonStreaming
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

    return MessageCreateParamsNonStreaming


def encode_body(spec, asked):
    target = resolve_target(spec, base_urls=("http://127.0.0.1",), env=ENV)
    encoded = target.wire.encode(asked, target.name)
    return json.loads(b"".join(encoded.chunks))


@pytest.mark.parametrize(("spec", "asked", "_call"), CASES, ids=IDS)
def test_the_official_types_accept_our_body(spec, asked, _call):
    body = encode_body(spec, asked)
    if spec.startswith("google/"):
        validate_gemini(body)
        return
    adapter = pydantic.TypeAdapter(params_type(spec))
    checked = adapter.validate_python(body)
    known = set(params_type(spec).__annotations__)
    for base in params_type(spec).__orig_bases__:
        known |= set(getattr(base, "__annotations__", {}))
    assert set(body) <= known, "a field the SDK does not know"
    assert checked["model"] == spec.partition("/")[2]


def validate_gemini(body):
    from google.genai import types

    assert set(body) <= {"contents", "systemInstruction", "generationConfig"}
    for content in [*body["contents"], body["systemInstruction"]]:
        types.Content.model_validate(content)
    types.GenerationConfig.model_validate(body["generationConfig"])


def test_a_wrong_body_is_not_accepted_by_the_official_types():
    body = encode_body("openai-chat/gpt-4.1", request()) | {"seed": "three"}
    with pytest.raises(pydantic.ValidationError):
        pydantic.TypeAdapter(params_type("openai-chat/x")).validate_python(body)
    with pytest.raises(pydantic.ValidationError):
        validate_gemini({"contents": [{"role": "user", "pieces": []}], "systemInstruction": {"parts": []}})


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        ("openai/gpt-5.2", "openai.types.responses:Response"),
        ("openai-chat/gpt-4.1", "openai.types.chat:ChatCompletion"),
        ("anthropic/claude-opus-4-6", "anthropic.types:Message"),
        ("google/gemini-3-pro", "google.genai.types:GenerateContentResponse"),
    ],
)
def test_the_words_we_read_are_words_the_official_types_have(spec, shape):
    """Every field name our decoders look for exists in the SDK's own reply type."""
    module, _, name = shape.partition(":")
    reply_type = getattr(importlib.import_module(module), name)
    schema = json.dumps(pydantic.TypeAdapter(reply_type).json_schema(by_alias=True))
    wire = resolve_target(spec, base_urls=("http://127.0.0.1",), env=ENV).wire
    shapes = [value for value in vars(wire).values() if getattr(value, "__module__", "") == wire.__name__]
    words = {word for shape in shapes for word in getattr(shape, "__struct_encode_fields__", ())}
    # What stands beside the answer is read by name: `.get("reason")`, `counts.read("input_tokens")`.
    looked_up = re.findall(r"\.(?:get|read)\(([^()]*)\)", inspect.getsource(wire))
    words |= {word for names in looked_up for word in re.findall(r'"(\w+)"', names)}
    if spec.startswith("openai-chat"):
        words -= {"reasoning_content", "reasoning"}  # local servers' own
    assert len(words) >= 12
    assert not {word for word in words if f'"{word}"' not in schema}


def test_every_level_of_effort_that_a_provider_has_can_be_asked_for():
    """A level that the next release of an SDK brings fails here instead of at a user's."""
    openai_levels = set(get_args(get_args(ReasoningEffort)[0]))
    claude_levels = set(get_args(get_args(get_type_hints(OutputConfigParam)["effort"])[0]))
    gemini_levels = {level.value.lower() for level in types.ThinkingLevel} - {"thinking_level_unspecified"}
    assert set(get_args(Effort)) == openai_levels | claude_levels | gemini_levels
    asked = Request(parts=(TextPart("?"),), max_tokens=70_000)
    for wire, model, levels in (
        (openai_responses, "gpt-6-sol", openai_levels),
        (openai_chat, "gpt-6-sol", openai_levels),
        (anthropic, "claude-opus-5-5", claude_levels),
        (anthropic, "claude-opus-4-5", claude_levels),
        (gemini, "gemini-3-pro", gemini_levels),
    ):
        for level in levels:
            body = b"".join(wire.encode(msgspec.structs.replace(asked, effort=level), model).chunks)
            assert level in body.decode().lower() or b"budget_tokens" in body


def test_every_service_tier_that_a_provider_has_can_be_asked_for():
    chat = get_args(get_args(get_type_hints(CompletionCreateParamsBase)["service_tier"])[0])
    claude = get_args(get_type_hints(MessageCreateParamsBase)["service_tier"])
    gemini_tiers = {tier.value for tier in types.ServiceTier} - {"unspecified"}
    assert set(get_args(get_args(ServiceTier)[0])) == openai_responses.TIERS
    assert (set(chat), set(claude), gemini_tiers) == (openai_chat.TIERS, anthropic.TIERS, gemini.TIERS)
    for wire, tier in ((openai_responses, "flex"), (openai_chat, "flex"), (anthropic, "auto"), (gemini, "flex")):
        asked = Request(parts=(TextPart("?"),), max_tokens=9, service_tier=tier)
        body = json.loads(b"".join(wire.encode(asked, "gpt-5.4").chunks))
        assert tier in (body.get("service_tier"), body.get("serviceTier"))
