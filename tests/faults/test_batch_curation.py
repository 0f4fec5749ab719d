"""Curating by batches decides what curating online decides, and asks nothing twice."""

import msgspec
import pytest
from batch_server import BatchServer

from drafts import draft, try_stage
from ledger_rows import read_rows
from medthink.core.errors import UsageError
from medthink.runs.batches import queue

DRAFTS = [
    draft(1, diagnosis="Lipoma", differential="Fibroma, Sarcoma"),
    draft(2, diagnosis="Lipoma", differential="Fibroma, Sarcoma"),
    draft(3, diagnosis="Unheard-of lesion", differential="Empyema, Nothing known"),
]


@pytest.fixture(autouse=True)
def quick_and_keyed(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SENTINEL-7f3a9c1e5b")
    monkeypatch.setattr(queue, "_FIRST_LOOK_S", 0.01)


def decide(stage, folder, server, **changes):
    url = f"{server.url}/v1"
    return try_stage(stage, folder, DRAFTS, model="openai/gpt-5.2", base_url=(url,), max_tokens=500, **changes)


def calls(trial, columns):
    return read_rows(trial.work.ledger, f"SELECT {columns} FROM calls ORDER BY key")


@pytest.mark.parametrize("stage", ["aliases", "icd", "options"])
def test_batches_decide_what_is_decided_online_for_half_the_price(tmp_path, stage):
    with BatchServer() as server:
        batched = decide(stage, tmp_path / "batched", server, batch=True)
        assert set(server.account()["run"].values()) == {1} and not server.online
        again = decide(stage, tmp_path / "batched", server, batch=True)
        assert set(server.account()["run"].values()) == {1}
        online = decide(stage, tmp_path / "online", server)
    assert batched.end == again.end and batched.end.counts == online.end.counts
    assert batched.decisions == online.decisions and batched.kept == online.kept
    assert calls(batched, "key, state") == calls(online, "key, state")
    costs = [read_rows(one.work.ledger, "SELECT sum(cost_usd) FROM attempts")[0][0] for one in (batched, online)]
    assert costs[0] == pytest.approx(costs[1] / 2)


def test_a_case_whose_call_waits_is_undecided_until_it_is_collected(tmp_path):
    with BatchServer(faults=["slow"]) as server:
        url = f"{server.url}/v1"
        settings = {"model": "server/toy", "base_url": (url,), "batch": True}
        trial = try_stage("icd", tmp_path, DRAFTS, **settings)
    open_now = [one for one in trial.decisions.values() if one.verdict == "undecided"]
    assert open_now and {(one.reason, one.detail) for one in open_now} == {("not-asked", "its call waits in a batch")}
    assert trial.end.counts.unfinished == len(open_now)


def test_a_limit_in_money_needs_a_price_and_takes_one_from_a_file(tmp_path):
    with BatchServer() as server:
        settings = {"model": "server/toy", "base_url": (f"{server.url}/v1",), "max_usd": 1.0}
        with pytest.raises(UsageError, match="needs a price"):
            try_stage("icd", tmp_path, DRAFTS, **settings)
        (tmp_path / "prices.toml").write_text(
            'date = "2026-01-01"\n[models]\n"server/toy" = { input = 1.0, output = 2.0 }\n'
        )
        trial = try_stage("icd", tmp_path, DRAFTS, prices="prices.toml", **settings)
    assert msgspec.to_builtins(trial.end.counts)["unfinished"] == 0
    assert all(cost > 0 for (cost,) in read_rows(trial.work.ledger, "SELECT cost_usd FROM attempts"))
