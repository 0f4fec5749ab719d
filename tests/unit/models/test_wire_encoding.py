"""What the wires refuse to send, how they map effort, and that text cannot break a body."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.models import ImagePart, ModelError, Request, Schema, TextPart
from medthink.models.wires import anthropic, gemini, openai_chat, openai_responses, server_chat

WIRES = [openai_responses, openai_chat, server_chat, anthropic, gemini]
MODELS = {
    openai_responses: "gpt-4o",
    openai_chat: "gpt-4o",
    server_chat: "m",
    anthropic: "claude-opus-4-6",
    gemini: "gemini-3-pro",
}
IMAGES = [ImagePart.from_bytes(bytes([n]) * 30, "image/png") for n in range(3)]


def request(**fields):
    return Request(**({"parts": (TextPart("t"), *IMAGES), "max_tokens": 60_000} | fields))


def body(wire, asked, model=None):
    return json.loads(b"".join(wire.encode(asked, model or MODELS[wire]).chunks))


@pytest.mark.parametrize("wire", WIRES)
def test_images_are_shared_not_copied(wire):
    asked = request()
    encoded = wire.encode(asked, MODELS[wire])
    shared = [chunk for chunk in encoded.chunks if any(chunk is image.base64 for image in IMAGES)]
    assert len(shared) == 3
    assert encoded.size_bytes == len(b"".join(encoded.chunks))


@pytest.mark.parametrize("wire", WIRES)
@given(text=st.text(), system=st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_arrives_as_it_is(wire, text, system):
    asked = request(parts=(IMAGES[0], TextPart(text), IMAGES[1]), system=system)
    sent = json.dumps(body(wire, asked), ensure_ascii=False)
    assert json.dumps(text, ensure_ascii=False) in sent
    if system:
        assert json.dumps(system, ensure_ascii=False) in sent
    assert sent.index(IMAGES[0].base64.decode()) < sent.index(IMAGES[1].base64.decode())


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_not_asked_for_is_not_sent(wire):
    sent = json.dumps(body(wire, request()))
    for word in ("temperature", "seed", "effort", "thinking", "schema", "system", "instructions", "null"):
        assert word not in sent.lower()


REFUSED = [
    (openai_responses, "gpt-5.2", {"seed": 1}, "--model-seed"),
    (openai_responses, "gpt-5.2", {"temperature": 0.0}, "--temperature"),
    (openai_responses, "gpt-5-mini", {"temperature": 0.0, "effort": "low"}, "--temperature"),
    (openai_responses, "o3", {"temperature": 1.0}, "--temperature"),
    (openai_chat, "o4-mini", {"temperature": 1.0}, "--temperature"),
    (openai_responses, "gpt-6-sol", {"temperature": 1.0}, "--temperature"),
    (openai_responses, "a-family-of-next-year", {"temperature": 1.0}, "--temperature"),
    (openai_responses, "gpt-4.1", {"temperature": 1.0, "effort": "low"}, "--temperature"),
    (anthropic, "claude-opus-4-6", {"temperature": 0.0}, "--temperature"),
    (anthropic, "claude-opus-4-6", {"seed": 0}, "--model-seed"),
    (anthropic, "claude-opus-4-6", {"max_tokens": None}, "--max-tokens"),
    (anthropic, "claude-opus-4-6", {"effort": "minimal"}, "--effort"),
    (anthropic, "claude-haiku-4-5", {"effort": "high", "max_tokens": 16_384}, "--max-tokens"),
    (gemini, "gemini-3-pro", {"effort": "none"}, "--effort"),
    (gemini, "gemini-3-pro", {"effort": "xhigh"}, "--effort"),
    (gemini, "gemini-2.5-pro", {"effort": "none"}, "--effort"),
    (gemini, "gemini-2.5-flash", {"effort": "xhigh"}, "--effort"),
    (gemini, "gemini-3-pro", {"seed": 2**31}, "--model-seed"),
    (server_chat, "m", {"service_tier": "flex"}, "--service-tier"),
    (anthropic, "claude-opus-5", {"service_tier": "flex"}, "--service-tier"),
    (openai_chat, "gpt-5.4", {"service_tier": "ultrafast"}, "--service-tier"),
]


@pytest.mark.parametrize(("wire", "model", "fields", "flag"), REFUSED)
def test_what_a_model_does_not_take_is_refused_before_sending(wire, model, fields, flag):
    with pytest.raises(ModelError) as caught:
        wire.encode(request(**fields), model)
    assert caught.value.kind == "unsupported"
    assert flag in caught.value.remedy


EFFORTS = [
    (openai_responses, "gpt-5.2", "xhigh", {"reasoning": {"effort": "xhigh", "summary": "auto"}}),
    (openai_chat, "gpt-5.2", "minimal", {"reasoning_effort": "minimal"}),
    (openai_responses, "gpt-6-sol", "max", {"reasoning": {"effort": "max", "summary": "auto"}}),
    (openai_responses, "gpt-5.2", "none", {"reasoning": {"effort": "none"}}),
    (server_chat, "m", "none", {"reasoning_effort": "none"}),
    (anthropic, "claude-opus-4-6", "none", {"thinking": {"type": "disabled"}}),
    (
        anthropic,
        "claude-sonnet-5",
        "xhigh",
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
    ),
    (anthropic, "claude-3-7-sonnet-20250219", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    (anthropic, "claude-opus-4-5-20251101", "xhigh", {"thinking": {"type": "enabled", "budget_tokens": 32768}}),
    (
        gemini,
        "gemini-2.5-flash",
        "none",
        {
            "generationConfig": {
                "maxOutputTokens": 60_000,
                "thinkingConfig": {"includeThoughts": False, "thinkingBudget": 0},
            }
        },
    ),
    (
        gemini,
        "gemini-3-flash-preview",
        "minimal",
        {
            "generationConfig": {
                "maxOutputTokens": 60_000,
                "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "MINIMAL"},
            }
        },
    ),
]


@pytest.mark.parametrize(("wire", "model", "effort", "expected"), EFFORTS)
def test_effort_becomes_the_providers_own_parameter(wire, model, effort, expected):
    sent = body(wire, request(effort=effort), model)
    assert {name: sent[name] for name in expected} == expected


def test_openai_takes_a_temperature_when_reasoning_is_off():
    assert body(openai_responses, request(temperature=0.3, effort="none"), "gpt-5.2")["temperature"] == 0.3
    assert body(openai_responses, request(temperature=0.3), "gpt-5-chat-latest")["temperature"] == 0.3


def test_a_name_with_a_slash_stays_one_path_segment():
    assert gemini.encode(request(), "tuned/../x").path == "/v1/models/tuned%2F..%2Fx:generateContent"


def test_schemas_are_sent_strict():
    schema = Schema("reading", {"type": "object"})
    assert body(openai_responses, request(schema=schema))["text"]["format"]["strict"] is True
    assert body(openai_chat, request(schema=schema))["response_format"]["json_schema"]["strict"] is True
    assert body(anthropic, request(schema=schema))["output_config"]["format"]["schema"] == {"type": "object"}
    assert body(gemini, request(schema=schema))["generationConfig"]["responseJsonSchema"] == {"type": "object"}
