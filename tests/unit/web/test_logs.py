"""Nothing that opens a door and nothing withheld gets into a log, however much is logged and whatever goes wrong."""

import json
import logging

import pytest
import sqlalchemy as sa

from medthink.accounts.account import find_account
from medthink.accounts.invitations import invite
from medthink.accounts.sessions import make_token
from medthink.store import tables
from medthink.web.board import routes
from medthink.web.board.cache import BoardCache
from people import Board, send
from small_benchmark import write_benchmark

pytestmark = pytest.mark.usefixtures("cheap_passwords")
PASSWORD = "sentinel lantern cobalt"
GOLD = "SENTINELGOLD"


@pytest.fixture
def board(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    board = Board(tmp_path, write_benchmark(tmp_path / "bench", cases=4))
    yield board
    board.store.close()


def test_secrets_and_gold_stay_out_of_the_log(board, caplog, capfd, monkeypatch):
    board.add("ann", "submitter", team="North", password=PASSWORD)
    link = invite(board.store, ["reader"], actor="test")
    token = make_token(board.store, find_account(board.store, "ann"), "x", ["read", "submit"], days=1)
    with board.client() as client:
        send(client, "/sign-in", name="ann", password=PASSWORD + "x")
        send(client, "/sign-in", name="ann", password=PASSWORD)
        session = client.cookies["medthink_session"]
        client.get(f"/invitation/{link}")
        send(client, f"/invitation/{link}", name="not a name", password=PASSWORD)
        send(client, "/account/password", old=PASSWORD, password="short")
        row = {"title": "Case number 100", "prediction": "A", "discussion": GOLD, "correct_answer": GOLD}
        upload = json.dumps(row).encode()
    with board.client() as client:
        bearer = {"authorization": f"Bearer {token}"}
        client.post("/api/v1/submissions?model=m", content=upload, headers=bearer)
        client.get("/api/v1/submissions", headers={"authorization": f"Bearer {token}y"})
        # A fault of ours whose words hold everything that must not be told.
        words = f"{PASSWORD} {token} {session} {link} {GOLD} WITHHELD"
        monkeypatch.setattr(routes, "leaderboard_page", lambda *_: (_ for _ in ()).throw(RuntimeError(words)))
        answer = client.get("/")
        assert answer.status_code == 500 and "Internal error" in answer.text and GOLD not in answer.text
        monkeypatch.setattr(BoardCache, "made", lambda *_: (_ for _ in ()).throw(RuntimeError(words)))
        assert client.get("/api/v1/leaderboard").json()["problem"] == "internal error"
    # The test's own browser logs the addresses it asks for.
    logged = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    told = "\n".join([*logged, *capfd.readouterr()])
    assert "RuntimeError" in told and "message not logged" in told
    secrets = [PASSWORD, token, token[4:20], session, link, GOLD, "WITHHELD"]
    assert [secret for secret in secrets if secret in told] == []


def test_an_error_of_the_database_brings_no_values_along(board):
    with pytest.raises(sa.exc.IntegrityError) as caught, board.store.write() as connection:
        connection.execute(tables.sessions.insert().values(digest=PASSWORD))
    assert PASSWORD not in str(caught.value)
