"""A sweep's file: lists spread out, models meet conditions, and what is wrong is named by file and field."""

import json
import signal

import pytest

from medthink.cli.command import run_command
from medthink.cli.output import console, print_table
from medthink.cli.run.sweep import fit_names, read_sweep_plan
from medthink.models.limits import RateLimits
from medthink.runs.sweep import group_by_provider, strictest_limits
from processes import Server, finish, medthink
from small_benchmark import write_benchmark

HEAD = 'data = "bench"\nout = "sweep"\n'
GRID = """
split = "train"
rpm = 60
[[models]]
model = ["openai/gpt-5.2", "openai/gpt-5-mini"]
[[models]]
name = "local"
model = "server/qwen-7b"
base_url = ["http://a/v1", "http://b/v1"]
rpm = 30
[[conditions]]
task = ["answer", "twi"]
image-share = "50%"
[[runs]]
name = "chance"
model = "baseline/random"
"""


def plan(tmp_path, text):
    (tmp_path / "plan.toml").write_text(HEAD + text)
    return tmp_path / "plan.toml"


def test_every_model_meets_every_condition(tmp_path):
    spec = read_sweep_plan(plan(tmp_path, GRID.replace('name = "local"\n', "")))
    named = {run.name: run.spec for run in spec.runs}
    assert list(named) == [
        "openai-gpt-5.2_answer_image-share-50", "openai-gpt-5.2_twi_image-share-50",
        "openai-gpt-5-mini_answer_image-share-50", "openai-gpt-5-mini_twi_image-share-50",
        "server-qwen-7b_answer_rpm-30_image-share-50", "server-qwen-7b_twi_rpm-30_image-share-50", "chance",
    ]  # fmt: skip
    assert {one.selection.split for one in named.values()} == {"train"}
    assert {one.condition.image_share for name, one in named.items() if name != "chance"} == {0.5}
    assert named["openai-gpt-5.2_twi_image-share-50"].condition.findings == "self"
    assert named["chance"].out == tmp_path / "sweep/chance"
    assert [len(lane) for lane in group_by_provider(spec.runs)] == [4, 2, 1]
    assert strictest_limits([run.transport for run in spec.runs]) == RateLimits(concurrency=16, requests_per_minute=30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[models]]\nmodel = "baseline/random"\nimage_shar = "5%"', "image_shar: no such field\n  → did you mean"),
        ('[[models]]\nmodel = "baseline/random"\nmax_usd = 3', "max_usd: no such field"),
        ('[[models]]\nmodel = "baseline/random"\nseed = ["x"]', "seed: 'x' is not a valid integer"),
        ('[[models]]\nmodel = "baseline/random"\nimage_share = "lots"', "run baseline-random_image-share-lots: "),
        ('[[models]]\ntask = "twi"', "run twi: missing: --model"),
        ('[[conditions]]\ntask = "twi"', "models: conditions need models"),
        ("models = 3", "models: not a list of tables"),
        ("", "models: the plan has no runs"),
        ('max_usd = "much"\nmodels = ["baseline/random"]', "max_usd: 'much' is not a number"),
        ('models = ["baseline/random", "baseline/random"]', "two runs are named baseline-random"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message, capsys):
    file = plan(tmp_path, text)
    assert run_command(["sweep", str(file)]) == 2
    assert f"{file}: {message}" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()


def test_a_sweep_without_data_out_or_plan_is_refused(tmp_path, capsys):
    (tmp_path / "plan.toml").write_text('models = ["baseline/random"]\n')
    assert run_command(["sweep", str(tmp_path / "plan.toml")]) == 2
    assert "data: data is missing" in capsys.readouterr().err
    assert run_command(["sweep"]) == 2
    assert "Missing argument 'PLAN.toml'" in capsys.readouterr().err
    assert run_command(["status", str(tmp_path)]) == 2
    assert "neither a run nor a sweep" in capsys.readouterr().err


def test_a_folder_with_other_things_is_left_alone(tmp_path, capsys):
    write_benchmark(tmp_path / "bench", cases=1)
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep/mine.txt").write_text("mine")
    assert run_command(["sweep", str(plan(tmp_path, 'models = ["baseline/random"]\n'))]) == 2
    assert "is not empty and holds mine.txt, not a sweep" in capsys.readouterr().err


def test_runs_of_a_sweep_are_ordinary_runs_and_shared_calls_say_where_they_come_from(tmp_path, capsys):
    write_benchmark(tmp_path / "bench", cases=2, images=2)
    shares = '[[models]]\nmodel = "baseline/random"\n[[conditions]]\ntask = "twi"\nimage_share = ["50%", "100%"]\n'
    assert run_command(["sweep", str(plan(tmp_path, shares))]) == 0
    assert "2 more shared" in capsys.readouterr().out
    run = tmp_path / "sweep/baseline-random_twi_image-share-100"
    assert run_command(["score", str(run)]) == 0
    capsys.readouterr()
    assert run_command(["show", str(run), "100", "--json"]) == 0
    attempts = [one for call in json.loads(capsys.readouterr().out)["calls"] for one in call["attempts"]]
    assert [(one["outcome"], one["endpoint"]) for one in attempts] == [
        ("shared", "run baseline-random_twi_image-share-50")
    ]


def test_another_terminal_sees_how_far_a_sweep_is(tmp_path):
    write_benchmark(tmp_path / "bench", cases=4)
    server = Server("--script", ",,,,," + ",".join(["hang"] * 9), "--hang", "200")  # five good answers
    text = f'concurrency = 2\n[[models]]\nmodel = ["server/a", "server/b"]\nbase_url = "{server.url}/v1"\n'
    try:
        working = medthink("sweep", plan(tmp_path, text))
        server.wait_for(7)
        told = json.loads(finish(medthink("status", tmp_path / "sweep", "--json"))[1])["live"]
        working.send_signal(signal.SIGINT)
        assert finish(working)[0] == 130
    finally:
        server.stop()
    assert (told["is_running"], told["calls"], told["predictions"]) == (True, 8, 8)
    assert (told["done"], told["in_flight"]) == (5, 2)
    assert told["detail"] == "1 of 2 runs done; now server-b"


def test_the_table_of_a_sweep_has_one_line_a_run_at_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    asked = [(share, effort) for share in (20, 40) for effort in ("low", "high")]
    names = [f"openai-gpt-5.2_twi_image-share-{share}_effort-{effort}" for share, effort in asked]
    rows = [(name, "720 of 720", "719 ok, 1 refused", "57.2 % (53.6–60.8)") for name in names]
    columns = ("run", "cases", "states", "accuracy (95 %)")
    fitted = fit_names(columns, rows)
    console().print(print_table("sweep", columns, [(name, *row[1:]) for name, row in zip(fitted, rows, strict=True)]))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(rows) and max(map(len, lines)) <= 80
    assert fitted == [f"image-share-{share}_effort-{effort}" for share, effort in asked]
    longer = fit_names(columns, [(f"{name}{'x' * 20}", *row[1:]) for name, row in zip(names, rows, strict=True)])
    assert all("…" in name and len(name) == len(longer[0]) for name in longer)
