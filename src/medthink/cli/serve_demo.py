"""The study of `medthink serve --demo`: a half-finished double reading by simulated readers."""

import io
import json
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

import click

from medthink.accounts.account import NewAccount, add_account, find_account
from medthink.accounts.invitations import renew_link
from medthink.accounts.roles import GivenRole
from medthink.board.benchmarks import add_benchmark
from medthink.board.checking import LoadedBenchmark
from medthink.board.moderation import annotate, publish, withdraw
from medthink.board.packing import pack_run
from medthink.board.queue import Upload, claim, fail, receive
from medthink.board.submissions import ModelDescription, list_submissions
from medthink.board.worker import process_submission
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.judge.judged import read_judgements
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Labels
from medthink.readers.studies import reading, setup
from medthink.readers.studies.marks import MarkChange, save_mark
from medthink.readers.studies.plan import StudyPlan
from medthink.readers.studies.reading import OpenSitting
from medthink.readers.studies.setup import Study
from medthink.store.engine import Store

COORDINATOR = "cora"
READERS = ("anna", "ben")
_NAME = "Demo: double reading"
_TEXTS = 8
# How often a demo reader agrees with the embedded judge; otherwise the label is random.
_AGREES = 0.8


def fill_study(store: Store, bench: Path, run: Path) -> dict[str, str]:
    """Make the half-read study if it does not exist; returns the secret of a personal link for each person in it."""
    with store.read() as connection:
        is_there = any(study.plan.name == _NAME for study in setup.list_studies(connection))
    if not is_there:
        plan = StudyPlan(
            name=_NAME,
            data=str(bench.resolve()),
            runs=(str(run.resolve()),),
            kinds=("steps", "omissions"),
            readers=READERS,
            cases=_TEXTS,
            needs_training=False,
        )
        with store.write() as connection:
            study = setup.create_study(connection, setup.plan_study(plan), made_by="demo")
        _read_half(store, study, run)
    people: dict[str, GivenRole] = {COORDINATOR: "coordinator", **dict.fromkeys(READERS, "reader")}
    return {f"{name}, {role}": _link(store, name, role) for name, role in people.items()}


def _link(store: Store, name: str, role: GivenRole) -> str:
    """A personal link for a person of the demo, who is added if missing."""
    new = NewAccount(name=name, shown_name=name.capitalize(), roles=(role,))
    account = find_account(store, name) or add_account(store, new, actor="demo")
    return renew_link(store, account, actor="demo")


def _read_half(store: Store, study: Study, run: Path) -> None:
    """Let every reader read the first half of their list."""
    labels = {verdict.id: KINDS[one.what].labels(verdict) for one in read_judgements(run) for verdict in one.verdicts}
    for name in READERS:
        chance = Random(seed_from(_NAME, name))
        with store.write() as connection:
            reader = setup.find_reader(connection, study.id, name)
            assert reader is not None
            own = reading.list_sittings(connection, reader.id)
            for opened in own[: len(own) // 2]:
                held = reading.hold_on_device(connection, opened, "demo")
                letter = chance.choice(list(held.sitting.letters))
                seconds = chance.uniform(60, 180)
                held = reading.commit_diagnosis(connection, held, letter, chance.randint(1, 4), seconds=seconds)
                for change in _marks(study, held, labels, chance):
                    save_mark(connection, held, change, "demo")
                reading.submit_sitting(connection, held, "demo")


def _marks(study: Study, opened: OpenSitting, labels: dict[str, Labels], chance: Random) -> list[MarkChange]:
    changes = []
    for text in opened.sitting.revealed.texts:
        column = KINDS[text.what].columns[0]
        for item in text.items:
            said = labels.get(study.key.codes[item.code].unit, {}).get(KINDS[text.what].leading)
            agrees = said is not None and chance.random() < _AGREES
            cells = {column.name: str(said) if agrees else chance.choice(column.choices[:-1])}
            if text.what == "steps":
                cells["weight"] = chance.choice(("decisive", "contributory", "incidental"))
                if cells["factual"] == "contradicted":
                    cells |= {"error_types": "image_understanding", "severity": chance.choice(("none", "minor"))}
            seconds = chance.uniform(8, 40)
            changes.append(MarkChange(item=item.code, version=0, cells=cells, seconds=seconds, key=item.code))
    return changes


TEAM = "Lakeside Lab"
_PEOPLE = {
    "sam": NewAccount(name="sam", shown_name="Sam", roles=("submitter",), team=TEAM),
    "mara": NewAccount(name="mara", shown_name="Mara", roles=("maintainer",)),
}
_Rows = list[dict[str, Any]]


def fill_submissions(store: Store, bench: Path, runs: Path) -> dict[str, str]:
    """Submit the team's files if they are missing; returns the secret of a new personal link for each person."""
    accounts = {
        name: find_account(store, name) or add_account(store, new, actor="demo") for name, new in _PEOPLE.items()
    }
    if not list_submissions(store, team=TEAM):
        _Team(store, LoadedBenchmark.open(bench), runs).hand_all_in()
    said = {"sam": f"sam, submitter of {TEAM}", "mara": "mara, maintainer"}
    return {said[name]: renew_link(store, account, actor="demo") for name, account in accounts.items()}


class _Team:
    """Submits the answers of embedded baselines, each file in a different state."""

    def __init__(self, store: Store, held: LoadedBenchmark, runs: Path) -> None:
        self._store = store
        self._held = held
        self._runs = runs
        self._benchmark = add_benchmark(store, held).id

    def hand_all_in(self) -> None:
        """One file for each state, the oldest first."""
        withdrawn = self._score("longest", _without_traces, notes="The rule of the longest option, without traces.")
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
        process_submission(self._store, found, self._held)
        return token

    def _fail(self, run: str, change: Callable[[_Rows], None]) -> None:
        self._receive(run, change)
        found = claim(self._store)
        assert found is not None
        fail(self._store, found, "the files of its benchmark were not available")

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
            about=ModelDescription(organisation="MedThink", **about),  # type: ignore[arg-type]
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


CASES = 60
# Retrieval writes steps, to be read beside the reference; the others choose a letter.
_BASELINES = {"random": "answer", "longest": "answer", "retrieval": "twi"}


def fill_demo(folder: Path, cases: int = CASES) -> tuple[Path, Path]:
    """The store and the benchmark of the demo, made in a folder if missing; needs no key and no network."""
    bench, store = folder / "phantoms", folder / "board.sqlite"
    if not bench.exists():
        _take("Drawing phantoms", ["data", "synth", "-o", str(bench), "--count", str(cases)])
    for name, task in _BASELINES.items():
        run = folder / "runs" / name
        if not run.exists():
            model = ["--model", f"baseline/{name}", "--task", task]
            _take(f"Running {name}", ["run", str(bench), *model, "--out", str(run)])
            team = ["--team", "Demo", "--allow-download", "--store", str(store)]
            _take(f"Adding {name} to the board", ["board", "add", str(run), "--data", str(bench), *team])
    read = folder / "runs" / "retrieval"
    if not (read / "units.jsonl").exists():
        kinds = ["--kinds", "steps,omissions", "--segmenter", "sentences"]
        _take("Splitting texts into units for readers", ["judge", str(read), "--judge", "baseline/rules", *kinds])
    return store, bench


def _take(does: str, words: list[str]) -> None:
    """Run a command as typed, and hide its output."""
    from medthink.cli.command import run_command

    click.echo(f"{does} …")
    with redirect_stdout(io.StringIO()):
        code = run_command(words)
    if code:
        raise UsageError(f"the demo could not be made: medthink {' '.join(words)}", remedy="see the message above")
