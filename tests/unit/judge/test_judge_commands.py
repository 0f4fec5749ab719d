"""`medthink judge`, `reading` and `agreement` as a person calls them."""

import json
import subprocess
import sys

import pytest

from judge_server import JudgeServer, judge_well
from judged_run import make_discussions, make_run
from medthink.cli.command import run_command
from medthink.core.tables import read_table, write_table
from medthink.judge.units import read_units
from medthink.readers.agreement import read_agreement
from medthink.readers.lists import COLUMNS, key_path, read_key
from medthink.readers.readings import readable_items
from medthink.scoring.scores import rate_text


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    return make_run(tmp_path)


def test_judge_prints_tables_and_the_same_as_json(run, capsys):
    assert run_command(["judge", str(run), "--judge", "baseline/rules"]) == 0
    shown = capsys.readouterr().out
    assert "Steps · baseline/rules · without images · smoke test" in shown
    assert "image understanding" in shown
    assert "3 calls made in this session" in shown
    assert run_command(["judge", str(run), "--judge", "baseline/rules", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["calls_made_now"] == 0
    assert plain["steps"][0]["is_smoke_test"]
    assert plain["steps"][0]["coverage"]["is_complete"]


def test_flags_reach_the_judge(run, capsys):
    with JudgeServer(judge_well) as server:
        words = [
            "judge",
            str(run),
            "--judge",
            "server/a",
            "--judge",
            "server/b",
            "--base-url",
            server.url,
            "--with-images",
        ]
        words += ["--temperature", "0", "--effort", "low", "--max-tokens", "777", "--no-schema"]
        assert run_command([*words, "--evidence", "findings,history", "--repeats", "2", "--json"]) == 0
        plain = json.loads(capsys.readouterr().out)
        sent = {"temperature": 0, "reasoning_effort": "low", "max_tokens": 777}
        for body in server.bodies:
            assert {name: body.get(name) for name in sent} == sent
            assert "response_format" not in body
    assert {one["seat"]["judge"] for one in plain["steps"]} == {"server/a", "server/b", "panel"}
    assert plain["steps"][0]["seat"]["setting"]["sees"] == ["history", "images", "findings"]
    assert plain["calls_made_now"] == 3 + 3 * 2 * 2


def test_what_is_not_judged_in_full_is_marked(run, capsys):
    assert run_command(["judge", str(run), "--judge", "baseline/rules", "--max-calls", "1"]) == 1
    shown = capsys.readouterr().out
    assert "INCOMPLETE, do not publish" in shown and "2 not asked yet" in shown


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--judge", "baseline/rules", "--kinds", "poems"], 2, "cannot judge poems"),
        (["--judge", "baseline/rules", "--evidence", "gold"], 2, "cannot be shown gold"),
        (["--judge", "baseline/random"], 2, "would judge itself"),
        (["--judge", "baseline/rules", "--max-calls", "1"], 1, "limit of --max-calls"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_code(words, code, message, run, capsys):
    assert run_command(["judge", str(run), *words]) == code
    assert message in capsys.readouterr().err


def test_lists_are_made_filled_in_and_compared(run, tmp_path, capsys):
    run_command(["judge", str(run), "--judge", "baseline/rules"])
    folder = tmp_path / "reading"
    assert (
        run_command(["reading", "lists", str(run), "--readers", "anna,ben", "--out", str(folder), "--format", "xlsx"])
        == 0
    )
    assert "do not give it to the readers" in capsys.readouterr().out
    key = read_key(key_path(folder))
    for reader in ("anna", "ben"):
        rows = [dict(row.cells) for row in read_table(folder / f"{reader}.xlsx").rows]
        for number, row in enumerate(rows):
            planted = key.codes[row["unit"]].planted
            row["factual"] = "no" if planted is False or (planted is None and "WRONG" in row["text"]) else "yes"
            row["note"] = "=1+1" if number else ""
        rows[0]["unit"] = "nowhere"
        write_table(folder / f"{reader}.xlsx", COLUMNS, rows)
    words = ["agreement", str(run), str(folder / "anna.xlsx"), str(folder / "ben.xlsx"), "--key", str(key_path(folder))]
    assert run_command(words) == 0
    captured = capsys.readouterr()
    assert "reader–reader: anna and ben" in captured.out
    assert "Wrong units" in captured.out
    assert "unmatched" in captured.err
    assert run_command([*words, "--slices", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["problems"] == {"unmatched": 2, "missing": 2}
    assert json.loads((run / "agreement.json").read_text())["raters"]["anna"] > 0


def test_a_list_that_is_not_filled_in_yet_is_one_line_and_buries_no_other_problem(run, tmp_path, capsys):
    run_command(["judge", str(run), "--judge", "baseline/rules"])
    folder = tmp_path / "reading"
    run_command(
        [
            "reading",
            "lists",
            str(run),
            "--readers",
            "anna,ben",
            "--repeat-share",
            "0",
            "--check-share",
            "0",
            "--out",
            str(folder),
        ]
    )
    rows = [dict(row.cells) for row in read_table(folder / "anna.csv").rows]
    write_table(
        folder / "anna.csv", COLUMNS, [rows[0] | {"factual": "perhaps"}, rows[1] | {"factual": "yes"}, *rows[2:]]
    )
    lists = [str(folder / f"{reader}.csv") for reader in ("anna", "ben")]
    capsys.readouterr()
    assert run_command(["agreement", str(run), *lists, "--key", str(key_path(folder))]) == 0
    invalid, anna, ben, total = capsys.readouterr().err.splitlines()
    assert "anna.csv:2: invalid: " in invalid and "'perhaps' is neither yes nor no" in invalid
    assert anna.endswith("anna.csv: unlabelled: 7 units are empty, in row 4, 5, 6, 7, 8, …")
    assert ben.endswith("ben.csv: unlabelled: 9 units are empty, in row 2, 3, 4, 5, 6, …")
    assert total.startswith("17 rows or cells were not used")


def test_agree_combines_few_readers_with_the_judge_and_says_what_that_rests_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    texts = ["The lesion is large. The margin is WRONG.", "It is small. It is round."]
    run = make_run(tmp_path, cases=8, rationales=texts * 4)
    run_command(["judge", str(run), "--judge", "baseline/rules"])
    units = [one for one in readable_items(read_units(run)).values() if one.case in (100, 101, 102, 103)]
    rows = [{"reader": "anna", "unit": one.id, "factual": "no" if "WRONG" in one.text else "yes"} for one in units]
    write_table(tmp_path / "t.jsonl", ("reader", "unit", "factual"), rows)
    capsys.readouterr()
    assert run_command(["agreement", str(run), str(tmp_path / "t.jsonl")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "judge alone judge corrected readers alone readers and judge" in shown
    assert "it holds if the cases read were drawn at random" in shown
    powered = read_agreement(run).biases[0].powered
    assert (powered.read, powered.unread) == (4, 4)
    assert rate_text(powered.readers) in shown and powered.readers.low > 0  # a rate does not fall below 0


def test_agree_shows_slices_when_asked_the_weighted_kappa_and_where_kappa_misleads(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "160")
    run = make_discussions(tmp_path)
    run_command(["judge", str(run), "--judge", "baseline/rules"])
    known = readable_items(read_units(run)).values()
    scored = [one.id for one in known if one.form == "education"]
    sentences = [one.id for one in known if one.form == "sentence"]
    rows = [
        *({"reader": "anna", "unit": unit, "score": "00112"[k % 5]} for k, unit in enumerate(scored)),
        *({"reader": "ben", "unit": unit, "score": "01120"[k % 5]} for k, unit in enumerate(scored)),
        *({"reader": name, "unit": unit, "label": "correct"} for name in ("anna", "ben") for unit in sentences),
    ]
    write_table(tmp_path / "t.jsonl", ("reader", "unit", "label", "score"), rows)
    capsys.readouterr()
    assert run_command(["agreement", str(run), str(tmp_path / "t.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert "modality: CT" not in shown
    education = next(line for line in shown.splitlines() if line.split()[:2] == ["education", "10"])
    kappas = next(pair.ordered for pair in read_agreement(run).pairs if pair.ordered)
    assert f"{kappas.kappa_quadratic.value:.2f}".replace("0.", ".") in education
    assert f"{kappas.kappa_linear.value:.2f}".replace("0.", ".") not in education
    assert "– !" in next(line for line in shown.splitlines() if line.split()[:2] == ["sentence", "24"])
    assert run_command(["agreement", str(run), str(tmp_path / "t.jsonl"), "--slices"]) == 0
    assert "anna and ben · modality: CT" in capsys.readouterr().out


def test_judging_again_says_that_the_agreement_is_of_earlier_judgements(run, capsys):
    words = ["judge", str(run), "--judge", "baseline/rules"]
    note = "agreement.json was made from earlier judgements: run medthink agreement again"
    assert run_command(words) == 0
    assert run_command(["agreement", str(run)]) == 0
    assert run_command(words) == 0
    assert note not in capsys.readouterr().err
    assert run_command([*words, "--evidence", "findings", "--json"]) == 0
    captured = capsys.readouterr()
    assert note in captured.err
    assert json.loads(captured.out)["calls_made_now"] == 3
    assert run_command(["agreement", str(run)]) == 0
    assert run_command(words) == 0
    assert note not in capsys.readouterr().err


def test_names_that_look_like_markup_are_shown_as_they_are(run, tmp_path, capsys):
    assert run_command(["judge", str(run), "--judge", "baseline/rules"]) == 0
    unit = json.loads((run / "units.jsonl").read_text().splitlines()[0])["units"][0]["id"]
    rows = [{"reader": name, "unit": unit, "factual": "yes"} for name in ("[red]anna[/]", ":smile: ben", "x\x1b[2Jy")]
    write_table(tmp_path / "t.jsonl", ("reader", "unit", "factual"), rows)
    place = tmp_path / "[b] names"
    run.rename(place)
    capsys.readouterr()
    assert run_command(["agreement", str(place), str(tmp_path / "t.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert "reader–reader: :smile: ben and [red]anna[/]" in shown
    assert "\x1b" not in shown
    assert run_command(["judge", str(place), "--judge", "baseline/rules"]) == 0
    assert f"judgements: {place / 'judgements.jsonl'}\n" in capsys.readouterr().out


def test_opening_the_commands_loads_no_judge_and_no_numbers():
    modules = "medthink.cli.exam, medthink.cli.judge, medthink.cli.reading, medthink.cli.results.agreement"
    code = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "openpyxl", "aiohttp", "scipy"} & set(loaded)


def test_a_judge_whose_every_reply_is_unusable_exits_1_and_has_no_scores(run, capsys):
    with JudgeServer(lambda *_: "no") as server:
        words = ["judge", str(run), "--judge", "server/a", "--base-url", server.url, "--segmenter", "sentences"]
        assert run_command(words) == 1
        shown = capsys.readouterr()
        assert "none of the judge's replies could be used" in shown.err
        assert "0 of 3" in shown.out and "image understanding" not in shown.out
        assert "agreement with readers" not in shown.out
        server.answer = judge_well
        assert run_command([*words, "--retry-unjudged"]) == 0


def test_judging_with_images_cautions_against_servers_that_ignore_them(run, capsys):
    with JudgeServer(judge_well) as server:
        words = ["judge", str(run), "--judge", "server/a", "--base-url", server.url, "--segmenter", "sentences"]
        assert run_command([*words, "--with-images"]) == 0
        assert "3 of 3 replies report too few input tokens for their images" in capsys.readouterr().err
