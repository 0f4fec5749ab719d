"""Tables fit the terminal, and no number is broken to make them fit."""

import pytest
from rich.cells import cell_len

from calling import call_command
from medthink.cli.data.data import data_check
from medthink.cli.output import console, print_lines, print_table

COLUMNS = ("run", "n", "accuracy (95 %)", "of answered", "states")
ROWS = [
    ("retrieval", 720, "57.2 % (53.6–60.8)", "58.1 % (54.4–61.7)", "712 ok, 8 failed"),
    ("a-run-of-a-rather-long-name", 720, "−20.0 points (−53.3 to +13.3)", "–", "720 ok"),
]
WORDS = {word for row in ROWS for cell in row for word in str(cell).split()}


def printed(width, monkeypatch, capsys, columns=COLUMNS, rows=ROWS):
    monkeypatch.setenv("COLUMNS", str(width))
    console().print(print_table("Scores", columns, rows, right=(1,)))
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 60, 76, 80, 120, 200])
def test_every_word_is_whole_at_every_width(width, monkeypatch, capsys):
    shown = printed(width, monkeypatch, capsys)
    assert set(shown.split()) >= WORDS
    assert max(cell_len(line) for line in shown.splitlines()) <= width


def test_a_wide_table_is_a_table_and_a_narrow_one_stands_upright(monkeypatch, capsys):
    assert len(printed(200, monkeypatch, capsys).splitlines()) == 2 + len(ROWS)
    upright = printed(60, monkeypatch, capsys).splitlines()
    assert [line.rstrip() for line in upright[1:4]] == [
        "retrieval", "  n                          720", "  accuracy (95 %)            57.2 % (53.6–60.8)",
    ]  # fmt: skip


def test_a_title_longer_than_its_table_is_one_line_where_the_terminal_has_room(monkeypatch, capsys):
    title = "baseline/retrieval · twi · unaided · 100 % of images · self findings · self summary"
    for width, lines in ((200, 1), (60, 2)):
        monkeypatch.setenv("COLUMNS", str(width))
        console().print(print_table(title, ("", ""), [("cases", 20)]))
        shown = capsys.readouterr().out.splitlines()
        assert " ".join(" ".join(shown[:lines]).split()) == title
        assert shown[lines].split() == ["cases", "20"]


def test_wide_characters_empty_cells_and_no_rows_fit_too(monkeypatch, capsys):
    shown = printed(60, monkeypatch, capsys, rows=[("日本語の名前", 1, "", "x" * 80, "\u200b")])
    assert max(cell_len(line) for line in shown.splitlines()) <= 60
    assert "run" in printed(60, monkeypatch, capsys, rows=[])


def test_the_table_of_problems_breaks_no_word(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "bad.jsonl").write_text('{"title": 1\n')
    said = call_command(data_check, [tmp_path / "bad.jsonl"]).output
    assert "split  case  field  what" in said


def test_a_long_table_is_printed_line_by_line_and_none_is_lost(capsys):
    rows = ((number, "ok", f"why {number}") for number in range(2500))
    print_lines("cases", ("case", "state", "why"), rows, right=(0,))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["cases", "case  state  why", "   0  ok     why 0"]
    assert len(lines) == 2502 and lines[-1] == "2499  ok     why 2499"
