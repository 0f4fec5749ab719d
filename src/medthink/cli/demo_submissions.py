"""The submissions of `medthink serve --demo`: one team's files in every state, and the people who manage them."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from medthink.accounts.invitations import renew_link
from medthink.accounts.people import NewAccount, add_account, find_account
from medthink.board.benchmarks import enter_benchmark
from medthink.board.checking import HeldBenchmark
from medthink.board.moderation import annotate, publish, withdraw
from medthink.board.packing import pack_run
from medthink.board.records import About, list_submissions
from medthink.board.store import BoardStore
from medthink.board.submissions import Upload, claim, receive
from medthink.board.worker import work_on

TEAM = "Lakeside Lab"
_PEOPLE = {
    "sam": NewAccount(name="sam", shown_name="Sam", roles=("submitter",), team=TEAM),
    "mara": NewAccount(name="mara", shown_name="Mara", roles=("maintainer",)),
}
_Rows = list[dict[str, Any]]


def fill_submissions(store: BoardStore, bench: Path, runs: Path) -> dict[str, str]:
    """Submit the team's files if they are missing; returns the secret of a new personal link for each person."""
    accounts = {
        name: find_account(store, name) or add_account(store, new, actor="demo") for name, new in _PEOPLE.items()
    }
    if not list_submissions(store, team=TEAM):
        _Team(store, HeldBenchmark.open(bench), runs).hand_all_in()
    said = {"sam": f"sam, submitter of {TEAM}", "mara": "mara, maintainer"}
    return {said[name]: renew_link(store, account, actor="demo") for name, account in accounts.items()}


class _Team:
    """Submits the answers of embedded baselines, and brings each file to a different state."""

    def __init__(self, store: BoardStore, held: HeldBenchmark, runs: Path) -> None:
        self._store = store
        self._held = held
        self._runs = runs
        self._benchmark = enter_benchmark(store, held).id

    def hand_all_in(self) -> None:
        """One file for each state, the oldest first."""
        withdrawn = self._score("longest", _without_traces, notes="The rule of the longest option, without its traces.")
        publish(self._store, withdrawn, actor="sam")
        withdraw(self._store, withdrawn, actor="sam", why="Superseded by a file with traces.")
        public = self._score("random", _without_traces, family="Guessers", effort="none")
        publish(self._store, public, actor="sam")
        annotate(self._store, public, actor="mara", words="A baseline: it guesses.")
        self._score("random", _break_lines)
        self._score("retrieval", _leave_some_out, family="Retrieval", notes="Gives no answer when it is unsure.")
        self._fail("longest", _only_letters)
        # This one waits for the worker of the served demo.
        self._receive("retrieval", _without_traces)

    def _score(self, run: str, change: Callable[[_Rows], None], **about: str) -> str:
        token = self._receive(run, change, **about)
        found = claim(self._store)
        assert found is not None
        work_on(self._store, found, self._held)
        return token

    def _fail(self, run: str, change: Callable[[_Rows], None]) -> None:
        self._receive(run, change)
        found = claim(self._store)
        assert found is not None
        work_on(self._store, found, None)

    def _receive(self, run: str, change: Callable[[_Rows], None], **about: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "packed.jsonl"
            pack_run(self._runs / run, path)
            rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        change(rows)
        upload = Upload(
            benchmark_id=self._benchmark,
            team=TEAM,
            model=f"baseline/{run}",
            data="".join(json.dumps(row) + "\n" for row in rows).encode(),
            about=About(organisation="MedThink", **about),  # type: ignore[arg-type]
            allows_download=True,
            sent_by="sam",
        )
        return receive(self._store, upload, actor="sam").token


def _without_traces(rows: _Rows) -> None:
    for row in rows:
        del row["trace"]


def _only_letters(rows: _Rows) -> None:
    rows[:] = [{"title": row["title"], "prediction": row["prediction"]} for row in rows]


def _leave_some_out(rows: _Rows) -> None:
    _without_traces(rows)
    for row in rows[::9]:
        row["prediction"] = None


def _break_lines(rows: _Rows) -> None:
    """Typical mistakes: a sixth letter, a repeated case, one from another benchmark, one left out."""
    _without_traces(rows)
    rows[2]["prediction"] = "F"
    rows[4] = dict(rows[3])
    rows[5]["title"] = "Case 999999"
    rows[7]["prediction_rationale"] = 7
    del rows[8]["prediction"]
