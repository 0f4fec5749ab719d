"""A sweep that is killed again and again asks nothing twice that was answered, within a run or in another one."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from killing import check_repeats, draw_waits, kill_and_resume
from ledger_rows import read_rows
from processes import finish, medthink
from small_benchmark import write_benchmark

CONCURRENCY = 4
KILLS = 5
SCHEMAS = {"findings": "findings", "summary": "summary", "differential": "answer"}


def write_plan(folder: Path, url: str, sizes: tuple[int, ...] = (1, 7, 70), **more: object) -> Path:
    models = "".join(f'[[models]]\nmodel = "server/m{size}b"\nbase_url = "{url}/v1"\n' for size in sizes)
    shares = [f"{share}%" for share in range(0, 101, 20)]
    head = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    plan = folder / "plan.toml"
    plan.write_text(
        f'data = "bench"\nout = "sweep"\nconcurrency = {CONCURRENCY}\n{head}{models}'
        f'[[conditions]]\ntask = "twi"\nimage_share = {shares}\neffort = ["low", "high"]\n'
    )
    return plan


def asked_of_server(record: dict) -> tuple:
    """Which call a request was: its model, effort, case, step and images."""
    body = record["body"]
    case = int(re.search(r"number (\d+) of the clinic", json.dumps(body))[1])
    schema = body["response_format"]["json_schema"]["name"]
    return body["model"], body["reasoning_effort"], case, schema, tuple(record["images"])


def finished_calls(sweep: Path) -> set[tuple]:
    found = set()
    for ledger in sweep.glob("*/ledger.sqlite"):
        assert read_rows(ledger, "PRAGMA integrity_check") == [("ok",)]
        model = json.loads((ledger.parent / "run.json").read_text())["model"].removeprefix("server/")
        for case, kind, text in read_rows(ledger, "SELECT case_id, kind, request FROM calls WHERE state = 'done'"):
            request = json.loads(text)
            images = tuple(part[2] for part in request["parts"] if part[0] == "image")
            found.add((model, request["effort"], case, SCHEMAS[kind], images))
    return found


def test_a_sweep_killed_five_times_asks_no_answered_call_twice(tmp_path, start_server):
    write_benchmark(tmp_path / "bench", cases=2, images=5)
    server = start_server("--latency", "0.01")
    plan = write_plan(tmp_path, server.url)
    waits = draw_waits(seed=5, kills=KILLS, most=40)
    sweep = tmp_path / "sweep"
    marks = kill_and_resume(["sweep", plan], server, waits=waits, finished=lambda: finished_calls(sweep))
    asked = [asked_of_server(record) if "body" in record else None for record in server.ask("/_records")]
    check_repeats(marks, asked, concurrency=CONCURRENCY)
    # For each model and effort: every image's findings once, whatever the share; 5 summaries; 6 differentials.
    assert len(set(asked) - {None}) == 3 * 2 * 2 * (5 + 5 + 6)
    assert finished_calls(sweep) == set(asked) - {None}
    runs = sorted(path.parent for path in sweep.glob("*/run.json"))
    assert len(runs) == 36
    for run in runs:
        assert [json.loads(line)["state"] for line in (run / "predictions.jsonl").read_text().splitlines()] == [
            "ok"
        ] * 2
    told = json.loads((sweep / "sweep.json").read_text())
    assert len(told["runs"]) == 36
    assert (sweep / "overview.svg").stat().st_size > 5_000


def test_a_dry_run_counts_what_the_sweep_then_sends(tmp_path, start_server):
    write_benchmark(tmp_path / "bench", cases=1, images=3)
    server = start_server()
    plan = write_plan(tmp_path, server.url, sizes=(1,), limit=1)
    _, out, err = finish(medthink("sweep", plan, "--dry-run", "--json"))
    assert err == ""
    assert finish(medthink("sweep", plan))[0] == 0
    assert json.loads(out)["calls"] == server.requests
    assert max(Counter(map(asked_of_server, server.ask("/_records"))).values()) == 1


def test_one_budget_holds_for_all_runs_and_a_higher_one_goes_on(tmp_path, start_server):
    write_benchmark(tmp_path / "bench", cases=1, images=3)
    server = start_server()
    plan = write_plan(tmp_path, server.url, sizes=(1,), max_calls=12)
    code, out, err = finish(medthink("sweep", plan))
    assert (code, server.requests) == (1, 12)
    assert "12 calls" in err
    assert "not begun" in out
    assert finish(medthink("sweep", plan, "--max-calls", 10_000))[0] == 0
    assert max(Counter(map(asked_of_server, server.ask("/_records"))).values()) == 1


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_provider_that_fails_ends_its_own_runs_alone(tmp_path, start_server, is_dead):
    write_benchmark(tmp_path / "bench", cases=2, images=2)
    bad = "http://127.0.0.1:9" if is_dead else start_server("--fault-rate", "1", "--faults", "401").url
    blocks = "".join(
        f'[[models]]\nname = "{name}"\nmodel = "server/{name}"\nbase_url = "{url}/v1"\n'
        for name, url in (("bad", bad), ("good", start_server().url))
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(f'data = "bench"\nout = "sweep"\n{blocks}')
    code, out, err = finish(medthink("sweep", plan))
    assert code == 3
    assert err.count("bad: no server answers at" if is_dead else "no case was answered: bad") == 1
    assert err.count("→ ") == 2, "where the sweep goes, and one remedy"
    assert re.search(r"good +2 of 2 +2 ok", out)


def test_cases_that_failed_leave_with_a_code_of_their_own(tmp_path, start_server):
    write_benchmark(tmp_path / "bench", cases=3, images=1)
    server = start_server("--script", ",400")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'data = "bench"\nout = "sweep"\nconcurrency = 1\n'
        f'[[models]]\nname = "one"\nmodel = "server/m"\nbase_url = "{server.url}/v1"\n'
    )
    code, out, err = finish(medthink("sweep", plan))
    assert (code, "1 of 3 predictions failed" in err) == (4, True)
    assert re.search(r"one +3 of 3 +2 ok, 1 failed", out)
    assert finish(medthink("sweep", plan))[0] == 0


def test_a_sweep_with_a_model_that_has_no_price_tells_the_known_part_and_the_model(tmp_path, start_server):
    write_benchmark(tmp_path / "bench", cases=2, images=1)
    (tmp_path / "prices.toml").write_text(
        'date = "2026-11-01"\n[models]\n"server/m1b" = { input = 100.0, output = 100.0 }\n'
    )
    plan = write_plan(tmp_path, start_server().url, sizes=(1, 7), prices="prices.toml")
    code, out, err = finish(medthink("sweep", plan, env={"COLUMNS": "400"}))
    assert code == 0, err
    known = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert known["paid_usd"] is None and known["known_usd"] > 0 and known["unpriced"] == ["server/m7b"]
    assert re.search(r"cost: \$[\d.]+, without what server/m7b cost: no price is known", out)
