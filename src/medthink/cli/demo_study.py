"""The study of `medthink serve --demo`: a half-finished double reading by simulated readers."""

from pathlib import Path
from random import Random

from medthink.accounts.invitations import renew_link
from medthink.accounts.people import NewAccount, add_account, find_account
from medthink.accounts.roles import GivenRole
from medthink.board.store import BoardStore
from medthink.core.digest import seed_from
from medthink.judge.judgements import read_judgements
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Labels
from medthink.readers.studies import desk, setup
from medthink.readers.studies.desk import OpenSitting
from medthink.readers.studies.plan import StudyPlan
from medthink.readers.studies.saving import MarkChange, save_mark
from medthink.readers.studies.setup import Study

COORDINATOR = "cora"
READERS = ("anna", "ben")
_NAME = "Demo: double reading"
_TEXTS = 8
# How often a demo reader agrees with the embedded judge; otherwise the label is random.
_AGREES = 0.8


def fill_study(store: BoardStore, bench: Path, run: Path) -> dict[str, str]:
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


def _link(store: BoardStore, name: str, role: GivenRole) -> str:
    """A personal link for a person of the demo, who is added if missing."""
    new = NewAccount(name=name, shown_name=name.capitalize(), roles=(role,))
    account = find_account(store, name) or add_account(store, new, actor="demo")
    return renew_link(store, account, actor="demo")


def _read_half(store: BoardStore, study: Study, run: Path) -> None:
    """Let every reader read the first half of their list."""
    labels = {verdict.id: KINDS[one.what].labels(verdict) for one in read_judgements(run) for verdict in one.verdicts}
    for name in READERS:
        chance = Random(seed_from(_NAME, name))
        with store.write() as connection:
            reader = setup.find_reader(connection, study.id, name)
            assert reader is not None
            own = desk.list_sittings(connection, reader.id)
            for opened in own[: len(own) // 2]:
                held = desk.hold(connection, opened, "demo")
                letter = chance.choice(list(held.sitting.letters))
                seconds = chance.uniform(60, 180)
                held = desk.commit_diagnosis(connection, held, letter, chance.randint(1, 4), seconds=seconds)
                for change in _marks(study, held, labels, chance):
                    save_mark(connection, held, change, "demo")
                desk.submit_sitting(connection, held, "demo")


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
