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

from lazily import Lazily
from medthink.core.digest import digest_value
from medthink.models import Effort, ImagePart, Request, Schema, TextPart
from medthink.models.catalog import PROVIDERS, ModelName, efforts_of, open_model, resolve_target
from medthink.models.image_detail import GEMINI_DETAILS, OPENAI_DETAILS, details_of, settle_detail
from medthink.models.prices import load_prices
from medthink.models.request import ImageDetail
from medthink.models.wires import anthropic, gemini, openai_chat, openai_responses

types = Lazily("google.genai.types")
claude, claude_messages = Lazily("anthropic.types"), Lazily("anthropic.types.message_create_params")
gpt, gpt_chats = Lazily("openai.types.shared"), Lazily("openai.types.chat.completion_create_params")
gpt_tiers = Lazily("openai.types.responses.service_tier")

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


def detail_of(model, asked):
    return asked.image_detail or ("original" if model.startswith("gpt-6") else "high")


def cache_fields(model, asked, content):
    """OpenAI's fields of its cache; the last image is marked where the beginning is repeated."""
    fields = {"prompt_cache_options": {"mode": "explicit"}} if model.startswith("gpt-6") else {}
    if asked.is_repeated:
        content[3]["prompt_cache_breakpoint"] = {"mode": "explicit"}
        fields["prompt_cache_key"] = digest_value([image.digest for image in IMAGES])[:32]
    return fields


def openai_responses_call(url, model, asked):
    import openai

    client = openai.OpenAI(api_key="sk-test", base_url=url + "/v1", max_retries=0)
    extra = {"temperature": asked.temperature} if asked.temperature is not None else {}
    if asked.effort:
        extra["reasoning"] = {"effort": asked.effort} | ({"summary": "auto"} if asked.effort != "none" else {})
    if asked.schema:
        extra["text"] = {"format": {"type": "json_schema", "name": "reading", "schema": DEFINITION, "strict": True}}
    content = [
        {"type": "input_image", "detail": detail_of(model, asked), "image_url": part[1]}
        if part[0] == "image"
        else {"type": "input_text", "text": part[1]}
        for part in data_url_parts()
    ]
    extra |= cache_fields(model, asked, content)
    client.responses.create(
        model=model, store=False, instructions=SYSTEM, max_output_tokens=asked.max_tokens,
        input=[{"role": "user", "content": content}], **extra,
    )  # fmt: skip


def openai_chat_call(url, model, asked, *, limit="max_completion_tokens", has_detail=True):
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
        {
            "type": "image_url",
            "image_url": {"url": part[1]} | ({"detail": detail_of(model, asked)} if has_detail else {}),
        }
        if part[0] == "image"
        else {"type": "text", "text": part[1]}
        for part in data_url_parts()
    ]
    extra |= cache_fields(model, asked, content)
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    client.chat.completions.create(model=model, messages=messages, **extra)


def server_chat_call(url, model, asked):
    openai_chat_call(url, model, asked, limit="max_tokens", has_detail=False)


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
    if asked.is_repeated:
        content[3]["cache_control"] = {"type": "ephemeral"}
    client.messages.create(
        model=model, max_tokens=asked.max_tokens, system=SYSTEM,
        messages=[{"role": "user", "content": content}], **extra,
    )  # fmt: skip


def gemini_call(url, model, asked):
    from google import genai
    from google.genai import types

    version = "v1beta" if asked.image_detail == "ultra_high" else None
    client = genai.Client(api_key="sk-test", http_options=types.HttpOptions(base_url=url, api_version=version))
    thinking = None
    if asked.effort and model.startswith("gemini-2.5"):
        thinking = types.ThinkingConfig(include_thoughts=True, thinking_budget=1_024)
    elif asked.effort:
        thinking = types.ThinkingConfig(include_thoughts=True, thinking_level=asked.effort.upper())
    finest = {"media_resolution": "MEDIA_RESOLUTION_ULTRA_HIGH"} if asked.image_detail == "ultra_high" else {}
    parts = [
        types.Part(text=part.text)
        if isinstance(part, TextPart)
        else types.Part.from_bytes(data=base64.b64decode(part.base64), mime_type=part.media_type, **finest)
        for part in PARTS
    ]
    level = f"MEDIA_RESOLUTION_{asked.image_detail.upper()}" if asked.image_detail and not finest else None
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM, max_output_tokens=asked.max_tokens, temperature=asked.temperature, seed=asked.seed,
        response_mime_type="application/json" if asked.schema else None,
        response_json_schema=DEFINITION if asked.schema else None, thinking_config=thinking,
        media_resolution=level,
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
    ("openai/gpt-6-sol", request(image_detail="low"), openai_responses_call),
    ("openai/gpt-6.1-sol", request(is_repeated=True), openai_responses_call),
    ("openai/gpt-4o", request(temperature=0.0, schema=None), openai_responses_call),
    ("openai-chat/gpt-4.1", request(temperature=0.7, seed=0), openai_chat_call),
    ("openai-chat/gpt-6-sol", request(effort="max", is_repeated=True), openai_chat_call),
    ("openai-chat/gpt-5-mini", request(effort="minimal", schema=None), openai_chat_call),
    ("server/qwen/qwen3-vl", request(temperature=0.0, seed=5), server_chat_call),
    ("anthropic/claude-opus-4-6", request(effort="high"), anthropic_call),
    ("anthropic/claude-opus-4-6", request(effort="none"), anthropic_call),
    ("anthropic/claude-haiku-4-5", request(effort="low", max_tokens=4_000), anthropic_call),
    ("anthropic/claude-sonnet-5", request(schema=None, is_repeated=True), anthropic_call),
    ("google/gemini-3-pro", request(effort="high", temperature=1.0, seed=7), gemini_call),
    ("google/gemini-2.5-flash", request(effort="low"), gemini_call),
    ("google/gemini-2.5-pro", request(schema=None), gemini_call),
    ("google/gemini-3.8-flash", request(image_detail="medium"), gemini_call),
    ("google/gemini-4-argon", request(image_detail="ultra_high"), gemini_call),
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
    openai_levels = set(get_args(get_args(gpt.ReasoningEffort)[0]))
    claude_levels = set(get_args(get_args(get_type_hints(claude.OutputConfigParam)["effort"])[0]))
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
    chat = get_args(get_args(get_type_hints(gpt_chats.CompletionCreateParamsBase)["service_tier"])[0])
    claude = get_args(get_type_hints(claude_messages.MessageCreateParamsBase)["service_tier"])
    gemini_tiers = {tier.value for tier in types.ServiceTier} - {"unspecified"}
    assert set(get_args(get_args(gpt_tiers.ServiceTier)[0])) == openai_responses.TIERS
    assert (set(chat), set(claude), gemini_tiers) == (openai_chat.TIERS, anthropic.TIERS, gemini.TIERS)
    for wire, tier in ((openai_responses, "flex"), (openai_chat, "flex"), (anthropic, "auto"), (gemini, "flex")):
        asked = Request(parts=(TextPart("?"),), max_tokens=9, service_tier=tier)
        body = json.loads(b"".join(wire.encode(asked, "gpt-5.4").chunks))
        assert tier in (body.get("service_tier"), body.get("serviceTier"))


# No models of images in general use: other media, tools of their own, other trades, switched off, or by invitation.
NOT_PRICED = re.compile(
    r"audio|search|codex|deep-research|computer-use|cyber|rosalind|daybreak|^gpt-3|^gpt-4(-|$)|^o1|^o3-mini|"
    r"^chatgpt-4o|^gpt-5\.1-mini$|preview-2"
)


def test_every_model_that_the_sdks_name_has_a_price():
    """A flagship that the next release of an SDK brings fails here, until its price is in the list."""
    from anthropic.types.model import Model
    from openai.types.shared.chat_model import ChatModel
    from openai.types.shared.responses_model import ResponsesModel

    prices = load_prices()
    named = [f"openai/{name}" for name in (*get_args(ChatModel), *get_args(get_args(ResponsesModel)[-1]))]
    named += [f"anthropic/{name}" for name in get_args(get_args(Model)[0])]
    assert len(named) > 100
    missing = [spec for spec in named if not NOT_PRICED.search(spec.partition("/")[2]) and prices.find(spec) is None]
    assert missing == []


def test_every_level_of_image_detail_that_a_provider_has_can_be_asked_for():
    from openai.types.chat.chat_completion_content_part_image_param import ImageURL
    from openai.types.responses.image_detail import ImageDetail as ResponsesDetail

    chat = set(get_args(get_type_hints(ImageURL)["detail"]))
    gemini_levels = {level.value.removeprefix("MEDIA_RESOLUTION_").lower() for level in types.PartMediaResolutionLevel}
    gemini_levels -= {"unspecified"}
    assert set(get_args(ResponsesDetail)) == chat == set(OPENAI_DETAILS)
    assert gemini_levels == set(GEMINI_DETAILS)
    assert set(get_args(ImageDetail)) == chat | gemini_levels
    for wire, model, levels in (
        (openai_responses, "gpt-6-sol", chat),
        (openai_chat, "gpt-6-sol", chat),
        (gemini, "gemini-3-pro", gemini_levels),
    ):  # fmt: skip
        for level in levels:
            body = b"".join(wire.encode(request(image_detail=level), model).chunks).decode()
            assert body.count(f'"detail":"{level}"') == 2 or f'MEDIA_RESOLUTION_{level.upper()}"' in body


def test_a_repeated_beginning_is_marked_as_the_official_types_allow():
    """Up to the last image, at Anthropic and in newer models of OpenAI; the others cache by themselves."""
    asked = request(is_repeated=True)
    body = encode_body("anthropic/claude-opus-5-5", asked)
    content = body["messages"][0]["content"]
    assert [part.get("cache_control") for part in content] == [None, None, None, {"type": "ephemeral"}, None]
    for spec, where in (("openai/gpt-6-sol", "input"), ("openai-chat/gpt-6-sol", "messages")):
        body = encode_body(spec, asked)
        marks = [part.get("prompt_cache_breakpoint") for part in body[where][-1]["content"]]
        assert marks == [None, None, None, {"mode": "explicit"}, None]
        assert body["prompt_cache_options"] == {"mode": "explicit"} and len(body["prompt_cache_key"]) == 32
        pydantic.TypeAdapter(params_type(spec)).validate_python(body)
        alone = encode_body(spec, request())
        assert alone["prompt_cache_options"] == {"mode": "explicit"}, "else every prompt is written, and paid for"
        assert "prompt_cache_key" not in alone and "prompt_cache_breakpoint" not in json.dumps(alone)
    assert "prompt_cache_options" not in encode_body("openai/gpt-5.5", asked), "only later models know it"
    for spec in ("google/gemini-3-pro", "server/qwen"):
        assert encode_body(spec, asked) == encode_body(spec, request())


def table_of_the_docs():
    """What docs/models.md says each provider takes, by column."""
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    lines = text.split("### What each provider takes")[1].split("###")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0].strip("`"): dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def listed(cell):
    return set() if cell == "–" else {word.strip() for word in cell.split(",")}


# The newest of each provider, and an older one where that takes what the newest does not.
FAMILIES = {
    "openai": ["gpt-6-sol"], "openai-chat": ["gpt-6-sol"], "anthropic": ["claude-opus-5-5"],
    "google": ["gemini-3.8-flash", "gemini-2.5-flash"], "server": ["qwen"],
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_table_of_the_docs_is_what_is_sent(provider):
    row = table_of_the_docs()[provider]
    models = [ModelName(provider, name) for name in FAMILIES[provider]]
    assert listed(row["effort"]) == {level for model in models for level in efforts_of(model)}
    assert listed(row["image detail"]) == {level for model in models for level in details_of(provider, model.name)}
    finest = settle_detail(None, provider, models[0].name)
    assert finest is None or row["default detail"].startswith((finest, "the same"))
    least = PROVIDERS[provider].least_cached
    assert row["cache from"] == ("–" if least is None else f"{least:,} tokens")
    tiers = getattr(resolve_target(str(models[0]), base_urls=("http://127.0.0.1",), env=ENV).wire, "TIERS", frozenset())
    assert listed(row["service tiers"]) == tiers
