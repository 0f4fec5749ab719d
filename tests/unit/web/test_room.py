"""The reading room as served: blind before the commit, nobody's name, and only one's own sittings."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from medthink.accounts.account import find_account
from medthink.cli.command import run_command
from medthink.core.errors import DataError
from medthink.judge.session import JudgeSpec, judge_run
from medthink.phantoms.writer import write_benchmark as write_benchmark_on_disk
from medthink.readers.studies import reading, setup
from medthink.runs.manifest import RunSpec
from medthink.runs.run import Run
from medthink.runs.session import run_session
from medthink.web.reading import training as training_pages
from medthink.web.reading.routes import find_reading
from medthink.web.reading.training import current_training
from people import FROM_HERE, send
from reading_room import TEXT, Room, make_judged_run, open_room

MARK = {"factual": "supported", "weight": "contributory"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judged_run(tmp_path_factory.mktemp("room"))


@pytest.fixture
def room(tmp_path: Path, run: Path) -> Iterator[Room]:
    with open_room(tmp_path, run) as made:
        yield made


def post_mark(client: Any, address: str, item: str, cells: dict[str, str], **fields: Any) -> Any:
    change = {"item": item, "cells": cells, "version": 0, "seconds": 3.0, "key": f"{item}-0"} | fields
    return client.post(f"{address}/marks", json=change, headers=FROM_HERE)


def state(client: Any, address: str) -> Any:
    return client.get(f"{address}/state").json()


def commit(client: Any, address: str) -> Any:
    client.get(address)
    answer = send(client, f"{address}/commit", option="A", confidence="3", seconds="40")
    assert answer.status_code == 303, answer.text
    return state(client, address)


def read_to_the_end(client: Any, address: str, marks: Any = lambda item: MARK) -> None:
    for text in commit(client, address)["reveal"]["texts"]:
        for item in text["items"]:
            cells = marks(item) if text["what"] == "steps" else {"finding": "mentioned"}
            assert post_mark(client, address, item["code"], cells).status_code == 200
    assert client.post(f"{address}/submit", headers=FROM_HERE | {"accept": "application/json"}).json() == {"gaps": []}


def test_before_the_commit_no_answer_of_the_server_gives_what_is_withheld(room: Room):
    address = room.address("anna")
    reference = Run.open(room.run).cases()[room.case("anna")].reference
    known = reference.images[0]
    withheld = [reference.findings, reference.discussion, known.caption, TEXT[:30], "baseline/random", str(room.run)]
    with room.board.client(room.anna) as client:
        places = ("/readings", f"/room/{room.study.token}", address, f"{address}/state")
        answers = [client.get(place) for place in places]
        answers.append(post_mark(client, address, room.codes("anna")[0], MARK))
        answers.append(client.post(f"{address}/submit", headers=FROM_HERE))
        answers.append(client.get(f"/images/{state(client, address)['images'][0]['id']}/1024"))
        for answer in answers:
            told = answer.text + json.dumps(dict(answer.headers))
            assert [text for text in withheld if text and text in told] == [], answer.url
            assert not re.search(r"\bben\b|Case number", told), answer.url
        assert not re.search(rf"\b{known.modality}\b", answers[2].text + answers[3].text)
        assert state(client, address)["reveal"] is None
        revealed = json.dumps(commit(client, address))
    assert reference.findings in revealed and TEXT in revealed and known.modality in revealed
    assert "baseline/random" not in revealed


def test_a_reader_sees_only_what_is_the_readers_own(room: Room):
    address = room.address("anna")
    with room.board.client(room.anna) as own:
        commit(own, address)
    for account, status in ((room.ben, 404), (room.eve, 404), (room.cora, 404), (None, 303)):
        with room.board.client(account) as client:
            for place in (address, f"{address}/state", f"/room/{room.study.token}/{room.codes('ben')[0]}x"):
                assert client.get(place, follow_redirects=False).status_code == status
            refused = 401 if account is None else 404
            assert send(client, f"{address}/commit", option="B", confidence="1").status_code == refused
            assert post_mark(client, address, "u0", MARK).status_code == refused
    with room.board.client(room.anna) as client:
        for place in (
            "/studies",
            "/studies/new",
            f"/studies/{room.study.token}",
            f"/studies/{room.study.token}/export.zip",
        ):
            assert client.get(place).status_code == 403
        for place in ("close", "link", "move", "adjudicate", "import"):
            assert send(client, f"/studies/{room.study.token}/{place}").status_code == 403


def test_a_page_has_the_browser_load_the_images_of_the_next_case_alone(room: Room):
    def loaded_ahead(place: str) -> list[str]:
        return re.findall(r'<link rel="prefetch" as="image" href="/images/([0-9a-f]+)/1024">', client.get(place).text)

    entry = f"/room/{room.study.token}"
    cases = [room.address("anna", place) for place in range(len(room.codes("anna")))]
    with room.board.client(room.anna) as client:
        shown = [[image["id"] for image in state(client, case)["images"]] for case in cases]
        assert loaded_ahead(entry) == shown[0]
        assert loaded_ahead(cases[0]) == shown[1]
        assert loaded_ahead(cases[1]) == shown[0], "a case that was begun comes first"
        for case in cases:
            read_to_the_end(client, case)
        assert loaded_ahead(entry) == loaded_ahead(cases[0]) == []


def test_a_case_of_a_study_cannot_be_revealed_in_the_explorer_before_it_is_read(room: Room):
    code, number = room.board.served.bench.code, room.case("anna")
    with room.board.client(room.anna) as client:
        assert client.get(f"/cases/{code(number)}").status_code == 403
        assert send(client, f"/cases/{code(number)}/answer", option="skip").status_code == 403
        commit(client, room.address("anna"))
        assert client.get(f"/cases/{code(number)}").status_code == 200
    with room.board.client(room.eve) as client:
        assert client.get(f"/cases/{code(number)}").status_code == 200


def test_marks_are_saved_once_and_stale_ones_are_shown(room: Room):
    address = room.address("anna")
    with room.board.client(room.anna) as client:
        item = commit(client, address)["reveal"]["texts"][0]["items"][0]["code"]
        assert post_mark(client, address, item, MARK).json() == {"version": 1}
        assert post_mark(client, address, item, MARK).json() == {"version": 1}
        changed = post_mark(client, address, item, MARK | {"note": "another"})
        assert (changed.status_code, changed.json()["cells"]) == (409, MARK), "a known key with other cells"
        stale = post_mark(client, address, item, {"factual": "unsure"}, key="other")
        assert (stale.status_code, stale.json()["cells"], stale.json()["version"]) == (409, MARK, 1)
        assert post_mark(client, address, item, {"factual": "perhaps"}, version=1, key="bad").status_code == 422
        assert state(client, address)["reveal"]["texts"][0]["items"][0]["cells"] == MARK


def test_another_device_waits_until_the_first_lets_go(room: Room):
    address = room.address("anna")
    with room.board.client(room.anna) as one, room.board.client(room.anna) as two:
        commit(one, address)
        assert two.post(f"{address}/hold", headers=FROM_HERE).status_code == 423
        assert "open on another device" in two.get(address).text
        assert one.post(f"{address}/hold", headers=FROM_HERE).status_code == 200


def test_the_room_works_without_script(room: Room):
    address = room.address("anna")
    with room.board.client(room.anna) as client:
        page = client.get(address).text
        assert 'name="option"' in page and TEXT not in page
        assert send(client, f"{address}/commit", option="A").status_code == 422
        commit(client, address)
        page = client.get(address).text
        names = sorted(set(re.findall(r'name="(u\w+):(factual|finding)"', page)))
        fields = {f"{code}:{name}": "supported" if name == "factual" else "missed" for code, name in names}
        fields |= {f"{code}:weight": "incidental" for code, name in names if name == "factual"}
        versions = {f"{code}:version": "0" for code, _ in names}
        assert send(client, f"{address}/submit").status_code == 422
        assert send(client, f"{address}/form", **fields, **versions).status_code == 303
        # The same page sent once more is stale where it says something else, and says so.
        other = {f"{names[0][0]}:{names[0][1]}": "unsure"}
        assert send(client, f"{address}/form", **(fields | other), **versions).status_code == 409
        assert send(client, f"{address}/submit").headers["location"] == f"/room/{room.study.token}"
        assert "locked" in client.get(address).text


def test_a_coordinator_sets_up_a_study_and_new_readers_come_in_by_their_links(room: Room):
    form = {"name": "Second", "runs": "run", "kinds": "steps", "readers": "dora, eve", "cases": "2"}
    form |= {"again": "0", "planted": "0"}
    with room.board.client(room.cora) as client:
        assert "not a whole number" in send(client, "/studies", **(form | {"cases": "many"})).text
        reckoned = send(client, "/studies", **form).text
        assert "Set up the study" in reckoned and "about 0." in reckoned and "is known to ±" in reckoned
        made = send(client, "/studies", **form, really="yes").text
        links = re.findall(r"http://[^<]*(/invitation/[\w-]+)", made)
        assert len(links) == 1 and "dora" in made
    with room.board.client() as dora:
        assert dora.post(links[0], headers=FROM_HERE, follow_redirects=False).status_code == 303
        assert "Second" in dora.get("/readings").text


def study_form(**fields: str) -> dict[str, str]:
    form = {"name": "Second", "runs": "run", "kinds": "steps", "cases": "2", "again": "0", "planted": "0"}
    return form | {"readers": "dora, eve", "really": "yes", "token": "abcdefghijkl"} | fields


def test_a_study_is_set_up_once_however_often_its_form_is_sent(room: Room):
    with room.board.client(room.cora) as client:
        assert re.search(r'name="token" value="[\w-]{12}"', client.get("/studies/new").text)
        assert "is set up" in send(client, "/studies", **study_form()).text
        again = send(client, "/studies", **study_form())
        assert (again.status_code, again.headers["location"]) == (303, "/studies/abcdefghijkl")
        with room.board.store.read() as connection:
            assert len(setup.list_studies(connection)) == 2


@pytest.mark.parametrize(
    ("readers", "problem"),
    [("x, eve", "cannot be used to sign in"), ("dora, sam", "sam may not read"), ("dora, DORA", "distinct names")],
)
def test_a_study_whose_readers_cannot_read_leaves_nothing_behind(room: Room, readers: str, problem: str):
    if find_account(room.board.store, "sam") is None:
        room.board.add("sam", "submitter")
    with room.board.client(room.cora) as client:
        answer = send(client, "/studies", **study_form(readers=readers))
    assert answer.status_code == 422 and problem in answer.text
    with room.board.store.read() as connection:
        assert len(setup.list_studies(connection)) == 1
    assert find_account(room.board.store, "dora") is None


def test_readers_have_the_names_of_their_accounts(room: Room):
    with room.board.client(room.cora) as client:
        made = send(client, "/studies", **study_form(readers="ann.smith, ann@clinic.org")).text
    assert len(re.findall(r"http://[^<]*(/invitation/[\w-]+)", made)) == 2


def test_a_slip_in_an_adjudicators_name_changes_nothing(room: Room):
    read_both(room, 1, "margin")
    room.board.add("sam", "submitter")
    with room.board.client(room.cora) as client:
        for name in ("Dr. Kim", "", "sam"):
            assert send(client, f"/studies/{room.study.token}/adjudicate", name=name).status_code == 422
        assert "go to eve" in send(client, f"/studies/{room.study.token}/adjudicate", name="eve").text


def test_a_coordinator_who_reads_sees_no_results_before_the_last_case(tmp_path: Path, run: Path):
    with open_room(tmp_path, run, readers=("anna", "cora")) as room:
        with room.board.client(room.anna) as client:
            for place in range(4):
                read_to_the_end(client, room.address("anna", place))
        at = f"/studies/{room.study.token}"
        with room.board.client(room.cora) as client:
            assert "You are still reading" in client.get(at).text
            assert client.get(f"{at}/export.zip").status_code == 403
            files = {"table": ("t.csv", b"unit,factual\n")}
            assert client.post(f"{at}/import", files=files, headers=FROM_HERE).status_code == 403
            for place in range(4):
                read_to_the_end(client, room.address("cora", place))
            assert "You are still reading" not in client.get(at).text
            assert client.get(f"{at}/export.zip").status_code == 200


def read_both(room: Room, cases: int, different: str) -> None:
    """Both readers read some cases, the same ones; ben cannot verify the steps with this word."""

    def doubt(item: Any) -> dict[str, str]:
        return {"factual": "unverifiable", "weight": "incidental"} if different in item["text"] else MARK

    wanted = sorted(room.case("anna", place) for place in range(4))[:cases]
    for account, marks in ((room.anna, lambda item: MARK), (room.ben, doubt)):
        with room.board.client(account) as client:
            for place in range(4):
                if room.case(account.name, place) in wanted:
                    read_to_the_end(client, room.address(account.name, place), marks)


def test_the_coordinators_figures_are_those_of_medthink_agree(room: Room, tmp_path: Path, capsys: Any):
    read_both(room, 4, "effusion")
    with room.board.client(room.cora) as client:
        page = client.get(f"/studies/{room.study.token}").text
        exported = client.get(f"/studies/{room.study.token}/export.zip").content
    zipfile.ZipFile(io.BytesIO(exported)).extractall(tmp_path)
    tables = [str(tmp_path / "reading" / f"{name}.csv") for name in ("anna", "ben")]
    words = ["agreement", str(room.run), *tables, "--key", str(tmp_path / "reading-key.json"), "--json"]
    assert run_command(words) == 0
    pairs = [one for one in json.loads(capsys.readouterr().out)["pairs"] if one["kind"] == "reader–reader"]
    (support,) = (one for one in pairs if one["aspect"] == "support" and not one["slicing"])
    value = support["nominal"]["percent"]["value"]
    assert f"{value * 100:.1f} %" in page and 0 < value < 1
    assert (tmp_path / "adjudicated.csv").read_text().count("\n") > 10
    published = (tmp_path / "published-run.csv").read_text()
    assert "human_factual1" in published and published.count("anna") == 4


def test_adjudication_goes_to_a_third_reader_who_is_told_no_name(room: Room):
    read_both(room, 1, "margin")
    with room.board.client(room.cora) as client:
        assert "1 unit judged differently" in client.get(f"/studies/{room.study.token}").text
        assert "go to eve" in send(client, f"/studies/{room.study.token}/adjudicate", name="eve").text
    with room.board.client(room.eve) as client:
        shown = commit(client, room.address("eve"))
        (item,) = shown["reveal"]["texts"][0]["items"]
        assert item["text"] == "The margin is smooth." and len(item["readings"]) == 2
        assert not {"anna", "ben"} & set(re.findall(r"\w+", json.dumps(shown)))
        read_to_the_end(client, room.address("eve"))
    with room.board.client(room.cora) as client:
        assert "1 settled" in client.get(f"/studies/{room.study.token}").text
        assert exported(client, room) == {
            "reading/anna.csv", "reading/ben.csv", "reading-key.json", "adjudicated.csv", "published-run.csv",
        }, "the adjudicator is no third reader: medthink agreement reading/*.csv gives the page's figures"  # fmt: skip


def exported(client: Any, room: Room) -> set[str]:
    archive = client.get(f"/studies/{room.study.token}/export.zip").content
    return set(zipfile.ZipFile(io.BytesIO(archive)).namelist())


def test_a_finding_that_a_list_lacks_is_exported(room: Room):
    address = room.address("anna")
    with room.board.client(room.anna) as client:
        commit(client, address)
        assert post_mark(client, address, "added", {"finding": "A pleural tail"}, key="added").status_code == 200
        read_to_the_end(client, address)
    with room.board.client(room.cora) as client:
        archive = client.get(f"/studies/{room.study.token}/export.zip").content
    table = zipfile.ZipFile(io.BytesIO(archive)).read("added-findings.csv").decode()
    assert f"anna,{room.case('anna')},A pleural tail" in table


def test_a_reassigned_case_leaves_no_gap_in_the_numbers_and_no_adjudicator_takes_part(room: Room):
    with room.board.store.read() as connection:
        ben = setup.find_reader(connection, room.study.id, "ben")
        assert ben is not None
        first = reading.list_sittings(connection, ben.id)[0]
    with room.board.store.write() as connection:
        setup.add_reader(connection, room.study.id, "eve", place=2)
        setup.add_reader(connection, room.study.id, "max", place=3, is_adjudicator=True)
    with room.board.client(room.cora) as client:
        refused = send(client, f"/studies/{room.study.token}/move", sitting=str(first.id), name="max")
        assert refused.status_code == 422 and "no such case or reader" in refused.text
        assert send(client, f"/studies/{room.study.token}/move", sitting=str(first.id), name="eve").status_code == 303
    for account, told in ((room.ben, "Case 1 of 3"), (room.eve, "Case 1 of 1")):
        with room.board.client(account) as client:
            assert told in client.get(room.address(account.name)).text


def test_a_table_filled_in_elsewhere_fills_gaps_and_overwrites_nothing(room: Room):
    address = room.address("anna")
    with room.board.client(room.anna) as client:
        items = [item["code"] for item in commit(client, address)["reveal"]["texts"][0]["items"]]
        post_mark(client, address, items[0], MARK)
    table = "unit,factual,weight\n" + "".join(f"{code},unverifiable,incidental\n" for code in [*items[:2], "u000"])
    with room.board.client(room.cora) as client:
        told = client.post(
            f"/studies/{room.study.token}/import",
            files={"table": ("anna.csv", table.encode(), "text/csv")}, headers=FROM_HERE,
        ).text  # fmt: skip
    assert (
        "1 marks saved" in told
        and "already marked as supported, contributory; the table says unverifiable, incidental" in told
    )
    assert "no such unit in this study" in told
    with room.board.client(room.anna) as client:
        cells = [item["cells"] for item in state(client, address)["reveal"]["texts"][0]["items"]]
    assert cells[0] == MARK and cells[1] == {"factual": "unverifiable", "weight": "incidental"}


def test_taking_in_a_table_holds_the_case_for_nobody(room: Room, monkeypatch: pytest.MonkeyPatch):
    address = room.address("anna")
    with room.board.client(room.anna) as client:
        item = commit(client, address)["reveal"]["texts"][0]["items"][0]["code"]
    table = f"unit,factual,weight\n{item},unverifiable,incidental\n"
    monkeypatch.setattr(reading, "now_utc", lambda: "2999-01-01T00:00:00Z")
    with room.board.client(room.cora) as client:
        files = {"table": ("anna.csv", table.encode(), "text/csv")}
        taken = client.post(f"/studies/{room.study.token}/import", files=files, headers=FROM_HERE)
        assert "1 marks saved" in taken.text
    with room.board.client(room.anna) as other_device:
        assert send(other_device, f"{address}/hold").status_code == 200


def _broken_sheets(_: Path) -> Any:
    raise DataError("an image cannot be read", remedy="mend it")


def test_training_gives_feedback_on_known_sentences_before_the_first_case(tmp_path: Path):
    bench, run = tmp_path / "bench", tmp_path / "run"
    write_benchmark_on_disk(bench, cases=16, seed=5, processes=1)
    run_session(RunSpec(benchmark=bench, model="baseline/longest", out=run))
    judge_run(JudgeSpec(run=run, judges=("baseline/rules",), what=("steps",), splitter="sentences"))
    plan: dict[str, Any] = {"kinds": ("steps",), "needs_training": True}
    with open_room(tmp_path, run, **plan) as room, room.board.client(room.anna) as client:
        assert client.get(room.address("anna"), follow_redirects=False).headers["location"].endswith("/training")
        place = f"/room/{room.study.token}/training"
        training, cases = current_training(
            room.board.served, *find_reading(room.board.served, room.study.token, "anna")
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_pages, "_find_sheets", _broken_sheets)
            assert client.get(place, follow_redirects=False).status_code == 422
        assert client.get(room.address("anna"), follow_redirects=False).headers["location"].endswith("/training")
        assert len(training.items) == 5 and {cases[item.case].split for item in training.items} == {"train"}
        for number, item in enumerate(training.items):
            said = str(training.truths[item.code].expected) if number else "unsure"
            told = client.post(place, data={"code": item.code, "label": said}, headers=FROM_HERE).text
            assert ("<b>Wrong</b>" if number == 0 else "<b>Right</b>") in told
        assert "4 of 5 right: you have passed." in client.get(place).text
        assert client.get(room.address("anna")).status_code == 200
