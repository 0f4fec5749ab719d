"""Every person at every route of the reading room, with sittings and studies that are there but not theirs."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from litestar.routes import HTTPRoute

from medthink.accounts.account import Account
from medthink.readers.studies import reading, setup
from medthink.readers.studies.plan import StudyPlan
from people import FROM_HERE
from reading_room import Room, make_judged_run

# What anna wrote of a unit, which nobody else may ever read but the coordinator.
SECRET = "ANNA-WROTE-THIS"
MARK = {"factual": "contradicted", "weight": "decisive", "error_types": "reasoning", "severity": "minor"}
# The model whose texts are read, and the reference of every case.
UNTOLD = ("baseline/random", "WITHHELD")


class Sat(NamedTuple):
    """One reader's first sitting: where it is, the code of its first item, and the case it is about."""

    place: str
    item: str
    case: int


class Scene(NamedTuple):
    """Two studies: anna and ben read in the first, dora in the second. Anna alone has begun, and marked a unit."""

    room: Room
    people: dict[str, Account | None]
    sat: dict[str, Sat]
    routes: list[tuple[str, str]]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("matrix")
    room = Room(root, make_judged_run(root))
    people = {name: getattr(room, name) for name in ("anna", "ben", "eve", "cora")} | {"visitor": None}
    people |= {"dora": room.board.add("dora", "reader"), "sam": room.board.add("sam", "submitter", team="North")}
    people |= {"max": room.board.add("max", "maintainer"), "mia": room.board.add("mia")}
    plan = msgspec.structs.replace(room.study.plan, name="Another", readers=("dora",), per_case=1)
    with room.board.store.write() as connection:
        other = setup.create_study(connection, setup.plan_study(StudyPlan(**_fields(plan))), made_by="cora")
    sat = {
        "anna": _sat(room, room.study, "anna"),
        "ben": _sat(room, room.study, "ben"),
        "dora": _sat(room, other, "dora"),
    }
    with room.board.client(room.anna) as client:
        client.get(sat["anna"].place)
        assert client.post(
            f"{sat['anna'].place}/commit", data={"option": "A", "confidence": "2"}, headers=FROM_HERE
        ).is_success
        assert _post_mark(client, sat["anna"], {**MARK, "note": SECRET}).status_code == 200
    app = room.board.app._app._app
    routes = [
        (method, route.path)
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for method in route.route_handler_map
        if method in ("GET", "POST")
    ]
    yield Scene(room, people, sat, sorted(routes))
    room.board.store.close()


def _fields(plan: StudyPlan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__struct_fields__}


def _sat(room: Room, study: setup.Study, name: str) -> Sat:
    with room.board.store.read() as connection:
        reader = setup.find_reader(connection, study.id, name)
        assert reader is not None
        sitting = reading.list_sittings(connection, reader.id)[0].sitting
    return Sat(f"/room/{study.token}/{sitting.code}", sitting.revealed.texts[0].items[0].code, sitting.case)


def _post_mark(client: Any, sat: Sat, cells: dict[str, str], version: int = 0) -> Any:
    change = {"item": sat.item, "version": version, "cells": cells, "seconds": 1.0, "key": f"k{version}"}
    return client.post(f"{sat.place}/marks", json=change, headers=FROM_HERE)


def _ask(scene: Scene, client: Any, method: str, path: str, sat: Sat) -> Any:
    """Ask for a route with the ids of this sitting, its study and its case."""
    _, _, study, sitting = sat.place.split("/")
    bench = scene.room.board.served.bench
    image = bench.id_of(next(iter(bench.cases.values())).question.images[0])
    in_room = path.startswith(("/room", "/studies"))
    names = {"study": study, "code": sitting if in_room else bench.code(sat.case), "name": "ui.js", "size": "112"}
    names |= {"id": image, "image": image, "image_id": image}
    parts = [names.get(part[1:-1].split(":")[0], "1") if part.startswith("{") else part for part in path.split("/")]
    address = "/".join(parts)
    if method == "GET":
        return client.get(address, follow_redirects=False)
    if address.endswith("/marks"):
        return _post_mark(client, sat, MARK, version=1)
    form = {"option": "B", "confidence": "1", f"{sat.item}:version": "1", f"{sat.item}:factual": "supported"}
    return client.post(address, data=form, headers=FROM_HERE, follow_redirects=False)


def _room_routes(scene: Scene, start: str) -> list[tuple[str, str]]:
    return [(method, path) for method, path in scene.routes if path.startswith(start) and "{study" in path]


def _state(scene: Scene) -> str:
    """All that is kept of anna's sitting."""
    room = scene.room
    with room.board.store.read() as connection:
        code = scene.sat["anna"].place.rsplit("/", 1)[1]
        found = reading.find_own_sitting(connection, reading.ReaderSitting(room.study.token, code, "anna"))
        assert found is not None
        marks = reading.read_marks(connection, found[0].id)
    return json.dumps([msgspec.to_builtins(found[0]), msgspec.to_builtins(marks)], sort_keys=True)


@pytest.mark.parametrize("whose", ["anna", "ben", "dora"])
@pytest.mark.parametrize("who", ["anna", "ben", "dora", "eve", "cora", "max", "sam", "mia", "visitor"])
def test_a_sitting_of_somebody_else_is_not_there(scene: Scene, who: str, whose: str):
    """Readers of the same study, of another one and of none, the coordinator, and people of other roles."""
    routes = [(method, path) for method, path in _room_routes(scene, "/room") if "{code" in path]
    assert len(routes) >= 7
    before = _state(scene)
    if who == whose:
        return
    account = scene.people[who]
    may_read = account is not None and account.may("reader")
    with scene.room.board.client(account) as client:
        for method, path in routes:
            answer = _ask(scene, client, method, path, scene.sat[whose])
            expected = 404 if may_read else 403 if account else 303 if method == "GET" else 401
            assert answer.status_code == expected, (method, path, answer.text[:200])
            told = answer.text + json.dumps(dict(answer.headers))
            assert [word for word in (*UNTOLD, SECRET, scene.sat[whose].item) if word in told] == [], (method, path)
    assert _state(scene) == before


@pytest.mark.parametrize("who", ["anna", "ben", "dora", "eve", "max", "sam", "mia", "visitor"])
def test_what_a_study_comes_to_is_for_its_coordinator(scene: Scene, who: str):
    routes = _room_routes(scene, "/studies")
    assert len(routes) >= 7
    account = scene.people[who]
    is_coordinator = account is not None and account.may("coordinator")
    with scene.room.board.client(account) as client:
        for method, path in routes if not is_coordinator else ():
            answer = _ask(scene, client, method, path, scene.sat["ben"])
            assert answer.status_code == (403 if account else 303 if method == "GET" else 401), (method, path)


@pytest.mark.parametrize("who", ["ben", "dora"])
def test_before_the_reveal_no_route_tells_a_reader_of_the_case_the_model_or_another_reader(scene: Scene, who: str):
    """Every address that the application has, asked for with the ids of the reader's own case and sitting."""
    asked = 0
    with scene.room.board.client(scene.people[who]) as client:
        for method, path in scene.routes:
            if method == "GET":
                answer = _ask(scene, client, method, path, scene.sat[who])
                asked += 1
                assert answer.status_code < 500, path
                told = answer.text + json.dumps(dict(answer.headers))
                assert [word for word in (*UNTOLD, SECRET, "anna", str(scene.room.run)) if word in told] == [], path
                assert "server-timing" not in answer.headers, path
        assert client.get(f"{scene.sat[who].place}/state").json()["reveal"] is None
    assert asked > 30
