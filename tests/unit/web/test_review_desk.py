"""The review desk: what a person decides in the browser is in the sheet that the next build obeys."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from medthink.core.tables import write_table
from medthink.curate.review import COLUMNS, read_rows
from medthink.curate.rulings import Rulings, read_journal
from people import Board, send

ROWS = [
    {
        "stage": "leaks",
        "case": "7",
        "asked": "decide",
        "verdict": "undecided",
        "reason": "a call failed",
        "question": "qaa",
    },
    {
        "stage": "options",
        "case": "8",
        "asked": "decide",
        "verdict": "undecided",
        "proposal": "Sarcoidosis",
        "question": "qbb",
    },
    {
        "stage": "leaks",
        "case": "9",
        "asked": "check",
        "verdict": "out",
        "by": "rule",
        "evidence": "<b>x</b>",
        "question": "qcc",
    },
]


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    write_table(tmp_path / "work/review.csv", COLUMNS, ROWS)
    made = Board(tmp_path, review=tmp_path / "work/review.csv")
    yield made
    made.store.close()


def row(number: int, **answer: str) -> dict[str, Any]:
    return {"question": ROWS[number]["question"]} | answer


def test_rulings_and_checks_are_kept_in_the_sheet_with_who_made_them(board: Board, tmp_path: Path):
    cora = board.add("cora", "coordinator")
    with board.client(cora) as client:
        page = client.get("/review").text
        assert "3 rows" in page and "&lt;b&gt;x" in page and "Sarcoidosis" in page
        assert send(client, "/review", **row(0, ruling="out", note="names it")).status_code == 303
        assert send(client, "/review", **row(1, ruling="in", value="Sarcoidosis")).status_code == 303
        assert send(client, "/review", **row(2, is_right="no")).status_code == 303
        assert "Nothing is waiting." in client.get("/review").text
        assert "no longer asked" in send(client, "/review", **(row(0, ruling="in") | {"question": "zz"})).text
        assert send(client, "/review", **row(0, ruling="perhaps")).status_code == 422
    journal = read_journal(tmp_path / "work")
    assert [(one.row.question, one.row.answer.ruling, one.row.answer.note, one.who) for one in journal[:2]] == [
        ("qaa", "out", "names it (cora)", "cora"),
        ("qbb", "in", "(cora)", "cora"),
    ]
    assert Rulings(journal).errors()[0].wrong == 1
    rows = read_rows(tmp_path / "work")
    assert [one.evidence for one in rows][2] == "<b>x</b>" and all(one.is_answered for one in rows)


def test_only_coordinators_decide(board: Board):
    for account, status in ((board.add("anna", "reader"), 403), (None, 401)):
        with board.client(account) as client:
            assert send(client, "/review", **row(0, ruling="out")).status_code == status


def test_an_old_page_of_a_second_curator_replaces_no_ruling(board: Board, tmp_path: Path):
    with board.client(board.add("cora", "coordinator")) as cora, board.client(board.add("carl", "coordinator")) as carl:
        assert 'name="entry" value="0"' in carl.get("/review").text
        assert send(cora, "/review", **row(0, ruling="out", entry="0")).status_code == 303
        answer = send(carl, "/review", **row(0, ruling="in", entry="0"))
    assert answer.status_code == 422 and "by cora in the meantime" in answer.text
    assert [one.who for one in read_journal(tmp_path / "work")] == ["cora"]
    assert next(one for one in read_rows(tmp_path / "work") if one.question == "qaa").answer.ruling == "out"
