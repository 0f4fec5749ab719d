"""The first minute: misspelt words get a suggestion, the shell completes, keys come from `.env`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medthink.cli.command import run_command
from medthink.cli.shell.env_file import KEYS, load_env_file, read_assignments
from processes import finish, medthink


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rnu"], "did you mean run?"),
        (["data", "chekc"], "did you mean check?"),
        (["run", "--modle", "x"], "Did you mean one of: '--model'"),
        (["run", "bench", "--model", "opnai/gpt-5.2", "--dry-run"], "did you mean openai?"),
        (["run", "bench", "--model", "baseline/retreival", "--dry-run"], "did you mean retrieval?"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(words, meant, tmp_path, monkeypatch, capsys):
    from small_benchmark import write_benchmark

    monkeypatch.chdir(tmp_path)
    write_benchmark(tmp_path / "bench", cases=1)
    assert run_command(words) == 2
    assert meant in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "meant"),
    [("openai/gtp-5.2", "openai/gpt-5.2"), ("openai/gpt-5.2", None), ("openai/mine", None), ("server/gpt-5.2", None)],
)
def test_a_model_with_nearly_the_name_of_another_is_questioned(model, meant, tmp_path, capsys):
    from small_benchmark import write_benchmark

    bench = write_benchmark(tmp_path / "bench", cases=1)
    words = ["run", str(bench), "--model", model, "--base-url", "http://localhost/v1", "--dry-run"]
    assert run_command(words) == 0
    err = capsys.readouterr().err
    assert (f"did you mean {meant}?" in err) if meant else err == ""


def test_the_flags_of_run_stand_under_headings(capsys):
    assert run_command(["run", "-h"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{title}") for title in ("What to run:", "Which cases:", "Condition (", "Server, limits")]
    assert places == sorted(places)
    assert places[2] < shown.index("--image-share") < places[3] < shown.index("--rpm")


def test_a_word_like_no_other_gets_none(capsys):
    assert run_command(["zzzzzz"]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(shell):
    code, out, err = finish(medthink("completion", shell))
    assert (code, err) == (0, "")
    assert "_MEDTHINK_COMPLETE" in out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("medthink sc", ["score"]), ("medthink data c", ["check"]), ("medthink run --max-u", ["--max-usd"])],
)
def test_bash_is_told_what_may_come_next(typed, offered):
    env = {"_MEDTHINK_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    code, out, err = finish(medthink(env=env))
    assert (code, err) == (0, "")
    assert out.split() == [f"plain,{word}" for word in offered]


def test_the_bash_script_is_bash():
    script = subprocess.run([sys.executable, "-m", "medthink", "completion", "bash"], capture_output=True, check=True)
    subprocess.run(["bash", "-n"], input=script.stdout, check=True)


def test_assignments_are_read_as_shells_write_them():
    text = "# keys\nexport OPENAI_API_KEY='a b#c'\nHF_TOKEN=abc # mine\nX = \"y\"  # z\nnonsense\nEMPTY=\n"
    assert read_assignments(text) == {"OPENAI_API_KEY": "a b#c", "HF_TOKEN": "abc", "X": "y", "EMPTY": ""}


def test_keys_come_from_dotenv_and_nothing_else_does(tmp_path, monkeypatch, capsys):
    for name in (*KEYS, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN", "from the shell")
    monkeypatch.chdir(tmp_path)
    # Some editors put a byte-order mark first.
    (tmp_path / ".env").write_text(
        "\ufeffOPENAI_API_KEY=k\nHF_TOKEN=other\nOPENAI_BASE_URL=http://evil\nPATH=/nowhere\n"
    )
    path = os.environ["PATH"]
    assert run_command(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"]["OPENAI_API_KEY"] is True
    assert os.environ["OPENAI_API_KEY"] == "k"
    assert os.environ["HF_TOKEN"] == "from the shell"
    assert "OPENAI_BASE_URL" not in os.environ
    assert os.environ["PATH"] == path
    # monkeypatch removes only what it set itself.
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def test_a_dotenv_that_is_no_text_is_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(b"OPENAI_API_KEY=\xff\n")
    assert run_command(["doctor"]) == 2
    assert ".env: not UTF-8 at byte 15" in capsys.readouterr().err
    load_env_file(tmp_path / "absent")


def test_a_report_that_is_no_page_is_refused(tmp_path, capsys):
    assert run_command(["report", "run", "-o", str(tmp_path / "x.pdf")]) == 2
    assert "must end in .html; a figure is written by --figure" in capsys.readouterr().err


# Loading these takes longer than a help page may.
SLOW = {
    "PIL", "aiohttp", "asyncio", "jinja2", "matplotlib", "numpy", "openpyxl", "pyarrow", "rapidfuzz", "rich", "scipy",
    "sqlalchemy", "medthink.cases.benchmark", "medthink.workflow.parsing.choice",
}  # fmt: skip
_HELP_OF_ALL = """
import sys
sys.path.insert(0, {docs!r})
from build_commands import build
build()
print(*sorted({slow!r} & set(sys.modules)))
"""


def test_no_help_loads_what_is_slow():
    script = _HELP_OF_ALL.format(docs=str(Path(__file__).parents[3] / "docs"), slow=SLOW)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_a_run_without_a_benchmark_is_refused_before_anything_slow_is_loaded():
    script = f"""
import sys
from medthink.cli.command import run_command
assert run_command(["run"]) == 2
print(*sorted({SLOW!r} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_a_command_with_a_plan_is_told_of_fields_in_place_of_flags(tmp_path, monkeypatch, capsys):
    from small_benchmark import write_benchmark

    monkeypatch.chdir(tmp_path)
    write_benchmark(tmp_path / "bench", cases=2)
    model = 'model = "server/m"\nbase_url = ["http://127.0.0.1:9/v1"]\nmax_wait = 0.0\n'
    (tmp_path / "sweep.toml").write_text(f'data = "bench"\nout = "runs"\n[[models]]\n{model}')
    assert run_command(["sweep", "sweep.toml", "-q"]) == 3
    told = capsys.readouterr().err
    assert "base_url in the plan; preflight = false in the plan skips this check" in told
    assert run_command(["sweep", "sweep.toml", "-q", "--max-usd", "1"]) != 0
    assert "--price" not in capsys.readouterr().err
    (tmp_path / "cases.csv").write_text("diagnosis,history\nGout,A man.\n")
    ingest = 'work = "w"\n[ingest]\nsource = "cases.csv"\nmin_images = 0\nneeds_licence = false\n'
    (tmp_path / "build.toml").write_text(f"{ingest}[leaks]\n{model}max_usd = 1.0\n")
    assert run_command(["curate", "build", "build.toml", "-q"]) == 2
    told = capsys.readouterr().err
    assert 'price = "5/30" in the plan' in told and "--price" not in told
