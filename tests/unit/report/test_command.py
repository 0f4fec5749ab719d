"""The reproduction command must be understood by `medthink run`, and mean the same."""

import shlex

import msgspec
import pytest

from medthink.cli.command import HELP_FLAGS
from medthink.cli.flags import read_condition
from medthink.cli.run.run import run as run_command
from medthink.report.provenance import condition_words, reproduction_command
from medthink.runs.manifest import Manifest
from medthink.runs.selection import Selection, Shard
from medthink.workflow.tasks import default_condition

CONDITIONS = [
    {},
    {"image_share": 0.0},
    {"image_share": 0.4, "image_choice": "spread"},
    {"image_share": 1 / 3, "image_order": "seeded"},
    {"swap_images": True, "show_history": False},
    {"option_order": 2},
    {"option_order": "seeded", "seed": 7},
    {"show_options": False, "use_schema": False},
    {"effort": "xhigh", "temperature": 0.7, "max_tokens": 4096, "samples": 5},
    {"image_max_side": 768, "image_max_bytes": 100_000, "prompt_set": "my prompts"},
]
TWI = [{"single_call": True}, {"findings": "expert"}, {"findings": "none", "summary": "expert"}]


def make_manifest(**changes) -> Manifest:
    fields = {
        "benchmark": "/somewhere/private/bench", "fingerprint": "f", "text_fingerprint": "t", "task": "answer",
        "selection": Selection(split="test"), "model": "server/m", "condition": default_condition("answer"),
        "condition_label": "", "prompts": {}, "created_at": "",
    }  # fmt: skip
    return Manifest(**(fields | changes))


def parse(command: str) -> dict:
    words = shlex.split(command)
    assert words[:2] == ["medthink", "run"]
    return run_command.make_context("run", words[2:], help_option_names=list(HELP_FLAGS)).params


@pytest.mark.parametrize(
    ("task", "changes"),
    [(task, changes) for task in ("answer", "discussion") for changes in CONDITIONS] + [("twi", one) for one in TWI],
)
def test_the_command_makes_the_same_condition(task, changes):
    condition = msgspec.structs.replace(default_condition(task), **changes)
    params = parse(reproduction_command(make_manifest(task=task, condition=condition), "out"))
    names = {flag for flag in params if flag not in _OTHERS}
    assert read_condition(task, {name: params[name] for name in names}) == condition


_OTHERS = {
    "data", "model", "task", "out", "split", "limit", "cases", "shard", "base_urls", "concurrency", "rpm", "tpm",
    "timeout", "max_usd", "max_calls", "prices", "dry_run", "show_prompts", "status", "as_json",
}  # fmt: skip


def test_the_default_needs_no_flag():
    assert condition_words("twi", default_condition("twi")) == []


def test_selection_and_servers():
    selection = Selection(split="train", cases=(3, 5), limit=9, shard=Shard(2, 8))
    manifest = make_manifest(selection=selection, base_urls=("http://user:secret@host/v1", "http://b"))
    command = reproduction_command(manifest, "my run")
    params = parse(command)
    assert (params["split"], params["cases"], params["limit"], params["shard"]) == ("train", (3, 5), 9, "2/8")
    assert params["base_urls"] == ("URL-1", "URL-2")
    assert str(params["out"]) == "my run"
    assert "secret" not in command and "private" not in command


def test_a_model_with_a_space_stays_one_word():
    assert parse(reproduction_command(make_manifest(model="server/a b; rm -rf $HOME"), "o"))["model"] == (
        "server/a b; rm -rf $HOME"
    )
