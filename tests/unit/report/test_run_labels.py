from pathlib import Path

import pytest
from msgspec.structs import replace

from medthink.report.runs import run_labels, run_names, short_models
from medthink.report.series import model_family, model_size


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("server/qwen3.5-27b", 27),
        ("medgemma-27B", 27),
        ("qwen3.5-0.8B", 0.8),
        ("qwen3.5-397b-a17b-fp8", 397),
        ("lingshu-i-8b", 8),
        ("qwen2.5-vl-72b-instruct", 72),
        ("gemma-270m", 0.27),
        ("qwen2.5-7b-instruct-1m", 7),
        ("org/internvl3.5-30b-a3b", 30),
        ("model_4b_it", 4),
        ("phi4", None),
        ("gpt-5.2", None),
        ("mixtral-8x7b", None),
        ("gemma-3n-e4b", None),
        ("long-1m", None),
        ("quant-4bit", None),
        ("claude-4.6-opus", None),
        ("zero-0b", None),
    ],
)
def test_sizes_are_read_off_names_or_not_at_all(model, size):
    assert model_size(model) == size


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("server/kin-27b-a3b", "server/kin"), ("kin_4b_it", "kin-it"), ("27b", "27b"), ("gpt-5", "gpt-5"),
        ("qwen3-vl-8b-thinking", "qwen3-vl-thinking"), ("qwen3-vl-30b-a3b-instruct", "qwen3-vl-instruct"),
        ("kin-v0.8b", "kin-v0.8b"),
    ],
)  # fmt: skip
def test_a_family_is_one_product_in_all_its_sizes(model, family):
    assert model_family(model) == family


def test_names_are_as_short_as_they_can_be():
    assert run_names([Path("a/x"), Path("a/y")]) == ["x", "y"]
    assert run_names([Path("a/x"), Path("b/x")]) == ["a/x", "b/x"]


def test_a_provider_is_left_out_where_nothing_is_lost():
    assert short_models(["openai/a", "server/b", "baseline/c"]) == {
        "openai/a": "a", "server/b": "b", "baseline/c": "baseline/c",
    }  # fmt: skip
    assert short_models(["openai/a", "server/a"]) == {"openai/a": "openai/a", "server/a": "server/a"}


def test_labels_say_what_differs(blind):
    labels = {entry.name: entry.label for entry in blind.entries}
    assert labels == {
        "share-0": "big · 0 % images",
        "share-100": "big · 100 % images",
        "low": "deep · effort low",
        "high": "deep · effort high",
        "small": "kin-4b",
        "large": "kin-27b",
        "discussion": "deep · discussion",
        "thrice": "dice",
    }


def test_labels_tell_runs_apart_however_long_their_names_are(blind):
    manifest = replace(blind.entries[0].manifest, model="server/" + "long-" * 12)
    names = [f"a-folder-whose-name-only-ends-in-what-tells-it-apart-{k}" for k in (1, 2)]
    assert len(set(run_labels([manifest, manifest], names))) == 2
