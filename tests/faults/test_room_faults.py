"""The server of the reading room killed in the middle of saves: what it acknowledged is there."""

import http.client
import json
import os
import re
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

from medthink.accounts.account import NewAccount, add_account
from medthink.accounts.sessions import begin_session
from medthink.readers.studies import reading, setup
from medthink.readers.studies.plan import StudyPlan
from medthink.store.engine import Store, store_url
from medthink.web.app.access import COOKIE
from processes import finish, medthink
from reading_room import make_judged_run

SAVES = int(os.environ.get("MEDTHINK_SAVES", "26"))
KILL_EVERY = 13


class SavingClient:
    """A reader's page: it saves, and when the server is gone it starts another one and sends the same again."""

    def __init__(self, root: Path, bench: Path, session: str) -> None:
        self._words = ("serve", "--store", root / "board.sqlite", "--data", bench, "--no-browser")
        self._session = session
        self.process: Any = None
        self.port = 0

    def start(self) -> None:
        self.process = medthink(*self._words)
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)/", line)[1])

    def send(self, place: str, body: str, kind: str) -> http.client.HTTPConnection:
        """Send, and wait for nothing."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"content-type": kind, "origin": f"http://127.0.0.1:{self.port}"}
        connection.request("POST", place, body, headers | {"cookie": f"{COOKIE}={self._session}"})
        return connection

    def post(self, place: str, body: str, kind: str) -> tuple[int, str]:
        with closing(self.send(place, body, kind)) as connection:
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        finish(self.process)


def test_no_acknowledged_save_is_lost_when_the_server_is_killed(tmp_path: Path):
    run = make_judged_run(tmp_path)
    store = Store(store_url(tmp_path / "board.sqlite"))
    anna = add_account(store, NewAccount(name="anna", roles=("reader",)), actor="test")
    plan = StudyPlan(
        name="Kill", data=str(run.parent / "bench"), runs=(str(run),), kinds=("steps",), readers=("anna",),
        per_case=1, again_share=0.0, planted_share=0.0, needs_training=False,
    )  # fmt: skip
    with store.write() as connection:
        study = setup.create_study(connection, setup.plan_study(plan), made_by="cora")
        reader = setup.list_readers(connection, study.id)[0]
        opened = reading.list_sittings(connection, reader.id)[0]
    items = [item.code for item in opened.sitting.revealed.texts[0].items]
    client = SavingClient(tmp_path, run.parent / "bench", begin_session(store, anna))
    place = f"/room/{study.token}/{opened.sitting.code}"
    client.start()
    assert client.post(f"{place}/commit", "option=A&confidence=2", "application/x-www-form-urlencoded")[0] == 303
    versions: dict[str, int] = {}
    for number in range(SAVES):
        item = items[number % len(items)]
        change = {"item": item, "version": versions.get(item, 0), "cells": {"note": f"n{number}"}, "seconds": 1.0}
        body = json.dumps(change | {"key": f"k{number}"})
        if number % KILL_EVERY == KILL_EVERY - 1:
            # The save is under way when the server dies, so nobody knows whether it was kept: it is sent again.
            with closing(client.send(f"{place}/marks", body, "application/json")):
                client.kill()
            client.start()
        status, told = client.post(f"{place}/marks", body, "application/json")
        assert status == 200, told
        versions[item] = json.loads(told)["version"]
    client.kill()
    with store.read() as connection:
        marks = reading.read_marks(connection, opened.id)
    store.close()
    assert {item: mark.version for item, mark in marks.items()} == versions
    assert sum(versions.values()) == SAVES
