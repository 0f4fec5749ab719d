"""The reading room: blind until committed, nothing acknowledged lost, and the figures of `medthink agreement`."""

import json
import threading

import msgspec
import pytest
import sqlalchemy as sa

from judge_server import JudgeServer, judge_well
from judged_run import make_run
from medthink.cases.slices import slice_cases
from medthink.core.errors import UsageError
from medthink.judge.kinds import KINDS
from medthink.judge.session import JudgeSpec, judge_run
from medthink.readers.agreement import measure_agreement
from medthink.readers.lists import key_path
from medthink.readers.studies import adjudication, plan, reading, results, setup
from medthink.readers.studies.marks import ADDED, MarkChange, SaveConflict, SavedMark, save_mark
from medthink.runs.run import Run
from medthink.store import tables

TEXT = "There is a mass in the left lung. The margin is WRONG here. So the diagnosis follows."
SUPPORTED = {"factual": "supported", "weight": "contributory"}
WRONG = {"factual": "contradicted", "weight": "decisive", "error_types": "reasoning", "severity": "minor"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = make_run(tmp_path_factory.mktemp("studies"), cases=4, rationales=[TEXT] * 4)
    with JudgeServer(judge_well) as server:
        judge_run(JudgeSpec(run=made, judges=("server/a",), base_urls=(server.url,), splitter="sentences"))
    return made


@pytest.fixture
def engine(tmp_path):
    made = sa.create_engine(f"sqlite:///{tmp_path / 'room.sqlite'}")
    tables.metadata.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def connection(engine):
    with engine.begin() as opened:
        yield opened


def make_plan(run, **changes):
    fields = {"again_share": 0.0, "planted_share": 0.0} | changes
    base = {"name": "Double reading", "data": str(run.parent / "bench"), "runs": (str(run),), "kinds": ("steps",)}
    return plan.StudyPlan(**(base | {"readers": ("anna", "ben")} | fields))


def begin(connection, run, **changes):
    """A study, and its readers by name."""
    study = setup.create_study(connection, setup.plan_study(make_plan(run, **changes)), made_by="coordinator")
    return study, {one.name: one for one in setup.list_readers(connection, study.id)}


def first(connection, reader):
    found = reading.list_sittings(connection, reader.id)[0]
    return reading.hold_on_device(connection, found, "laptop")


def change(item, cells, *, version=0, key=None, seconds=12.0):
    return MarkChange(item=item, version=version, cells=cells, seconds=seconds, key=key or f"{item}-{version}")


def read_case(connection, found, marks):
    """Read one sitting to the end; `marks` gives the cells of an item by its place."""
    found = reading.hold_on_device(connection, found, "laptop")
    found = reading.commit_diagnosis(connection, found, "A", 3, seconds=40.0)
    items = [item for text in found.sitting.revealed.texts for item in text.items]
    for place, item in enumerate(items):
        assert save_mark(connection, found, change(item.code, marks(place, item)), "laptop") == SavedMark(1)
    assert reading.submit_sitting(connection, found, "laptop") == []


def read_all(connection, reader, marks):
    for found in reading.list_sittings(connection, reader.id):
        read_case(connection, found, marks)


def by_words(place, item):
    return WRONG if "WRONG" in item.text else SUPPORTED


def test_every_case_goes_to_two_readers_in_orders_of_their_own(run):
    planned = setup.plan_study(make_plan(run))
    cases = {name: [one.case for one in own] for name, own in planned.lists.sittings.items()}
    assert sorted(cases["anna"]) == sorted(cases["ben"]) == [100, 101, 102, 103]
    assert setup.plan_study(make_plan(run)) == planned
    orders = {
        tuple(one.case for one in setup.plan_study(make_plan(run, seed=seed)).lists.sittings["anna"])
        for seed in range(6)
    }
    assert len(orders) > 1


def test_the_plan_says_what_it_takes_and_how_precise_it_will_be(run):
    found = setup.plan_study(make_plan(run)).forecast
    assert (found.texts, found.units) == (4, 12)
    assert found.hours["anna"] == pytest.approx(4 * plan.CASE_MINUTES / 60 + 12 * plan.UNIT_SECONDS / 3600)
    half = setup.plan_study(make_plan(run, cases=2)).forecast
    assert half.rate_half_width > found.rate_half_width > 0 and half.kappa_half_width > found.kappa_half_width
    assert setup.plan_study(make_plan(run, per_case=1)).forecast.kappa_half_width is None


def test_the_forecast_agrees_with_the_table_of_sample_sizes():
    # docs/judging.md: a κ of 0.6 at 20 % wrong steps and clustering 0.2 is known to ±0.1 with 118 cases of 8 steps.
    made = plan.StudyPlan(name="s", data="d", runs=("r",), kinds=("steps",), readers=("a", "b"))
    assert plan.forecast(made, [8] * 118, {}).kappa_half_width == pytest.approx(0.1, abs=0.001)
    assert plan.forecast(made, [8] * 74, {}).rate_half_width == pytest.approx(0.05, abs=0.001)


def test_plans_that_cannot_be_are_refused(run):
    for changes, words in [
        ({"name": " "}, "name"),
        ({"kinds": ("poetry",)}, "poetry"),
        ({"kinds": ()}, "only for their diagnosis"),
        ({"readers": ("anna", "anna")}, "distinct names"),
        ({"per_case": 3}, "cannot go to 3 of them"),
        ({"modality": "Ultrasound"}, "nothing to read"),
        ({"kinds": ("discussion",)}, "nothing to read"),
    ]:
        with pytest.raises(UsageError, match=words):
            setup.plan_study(make_plan(run, **changes))


def test_an_account_finds_the_studies_it_reads_in(connection, run):
    study, readers = begin(connection, run)
    other, _ = begin(connection, run, readers=("ben", "cara"))
    assert [one.token for one, _ in setup.studies_read_by(connection, "ben")] == [other.token, study.token]
    assert setup.find_reader(connection, study.id, "ben") == readers["ben"]
    assert setup.find_reader(connection, study.id, "cara") is None
    setup.store_training(connection, readers["ben"].id, {"item": "supported"}, is_passed=True)
    assert setup.find_reader(connection, study.id, "ben").trained_at is not None
    setup.close_study(connection, study.id)
    assert setup.find_study(connection, study.token).closed_at is not None


def test_the_blind_half_holds_nothing_of_the_reference_and_nobodys_name(connection, run):
    study, readers = begin(connection, run)
    found = first(connection, readers["anna"])
    blind = msgspec.json.encode(found.sitting.blind).decode()
    case = Run.open(run).cases()[found.sitting.case]
    withheld = [
        case.reference.findings,
        case.reference.discussion,
        case.reference.images[0].caption,
        case.reference.images[0].modality,
    ]
    assert not any(text in blind for text in withheld if text)
    assert "baseline" not in blind and TEXT not in blind
    # What is behind the codes is in the key alone.
    shown = msgspec.json.encode(found.sitting).decode()
    assert not any(code.unit in shown for code in study.key.codes.values())
    assert "baseline/random" not in shown and study.plan.runs[0] not in shown


def test_nothing_can_be_marked_before_the_diagnosis_and_the_first_diagnosis_counts(connection, run):
    _, readers = begin(connection, run)
    found = first(connection, readers["anna"])
    item = found.sitting.revealed.texts[0].items[0].code
    with pytest.raises(UsageError, match="not been read yet"):
        save_mark(connection, found, change(item, SUPPORTED), "laptop")
    for letter, sure in [("F", 2), ("A", 9)]:
        with pytest.raises(UsageError, match="how sure"):
            reading.commit_diagnosis(connection, found, letter, sure, seconds=1.0)
    done = reading.commit_diagnosis(connection, found, "B", 2, seconds=30.0)
    assert done.is_revealed and done.letter == done.sitting.letters["B"]
    assert reading.commit_diagnosis(connection, found, "C", 4, seconds=1.0).letter == done.letter


def test_a_stale_save_changes_nothing_and_shows_what_is_there(connection, run):
    _, readers = begin(connection, run)
    found = reading.commit_diagnosis(connection, first(connection, readers["anna"]), "A", 1, seconds=1.0)
    item = found.sitting.revealed.texts[0].items[0].code
    assert save_mark(connection, found, change(item, SUPPORTED, key="one"), "laptop") == SavedMark(1)
    # The same change sent again, as after a lost reply, is the same change.
    assert save_mark(connection, found, change(item, SUPPORTED, key="one"), "laptop") == SavedMark(1)
    answer = save_mark(connection, found, change(item, WRONG, key="two"), "laptop")
    assert isinstance(answer, SaveConflict) and (answer.version, answer.cells) == (1, SUPPORTED)
    assert save_mark(connection, found, change(item, WRONG, version=1, key="three"), "laptop") == SavedMark(2)
    mark = reading.read_marks(connection, found.id)[item]
    assert mark.cells == WRONG and mark.seconds == 24.0
    events = connection.execute(sa.select(tables.mark_events.c.version)).scalars().all()
    assert sorted(events) == [1, 2]


def test_marks_that_say_what_no_mark_may_are_refused(connection, run):
    _, readers = begin(connection, run)
    found = reading.commit_diagnosis(connection, first(connection, readers["anna"]), "A", 1, seconds=1.0)
    item = found.sitting.revealed.texts[0].items[0].code
    for cells in [{"factual": "maybe"}, {"color": "red"}, SUPPORTED | {"severity": "minor"}, {"note": "x" * 3000}]:
        with pytest.raises(UsageError):
            save_mark(connection, found, change(item, cells), "laptop")
    with pytest.raises(UsageError, match="no such item"):
        save_mark(connection, found, change("u0", SUPPORTED), "laptop")
    assert reading.read_marks(connection, found.id) == {}
    missed = change(ADDED, {"finding": "a small effusion"})
    assert save_mark(connection, found, missed, "laptop") == SavedMark(1)


def test_gaps_are_listed_and_a_submitted_reading_is_locked(connection, run):
    _, readers = begin(connection, run)
    found = reading.commit_diagnosis(connection, first(connection, readers["anna"]), "A", 1, seconds=1.0)
    one, two, three = (item.code for item in found.sitting.revealed.texts[0].items)
    save_mark(connection, found, change(one, {"factual": "contradicted"}), "laptop")
    save_mark(connection, found, change(two, {"factual": "unsure"}), "laptop")
    gaps = {gap.item: gap.columns for gap in reading.submit_sitting(connection, found, "laptop")}
    assert gaps == {one: ("weight", "error_types", "severity"), three: ("factual", "weight")}
    save_mark(connection, found, change(one, WRONG, version=1), "laptop")
    save_mark(connection, found, change(three, SUPPORTED), "laptop")
    assert reading.submit_sitting(connection, found, "laptop") == []
    with pytest.raises(UsageError, match="locked"):
        save_mark(connection, found, change(three, WRONG, version=1, key="late"), "laptop")


def test_one_device_holds_a_sitting_until_its_lease_ends(connection, run):
    _, readers = begin(connection, run)
    found = reading.commit_diagnosis(connection, first(connection, readers["anna"]), "A", 1, seconds=1.0)
    with pytest.raises(UsageError, match="another device"):
        reading.hold_on_device(connection, found, "tablet")
    item = found.sitting.revealed.texts[0].items[0].code
    with pytest.raises(UsageError, match="another device"):
        save_mark(connection, found, change(item, SUPPORTED), "tablet")
    connection.execute(sa.update(tables.sittings).values(held_until="2020-01-01T00:00:00Z"))
    assert reading.hold_on_device(connection, found, "tablet").holder == "tablet"


def test_a_case_that_was_revealed_once_stays_revealed(connection, run):
    _, readers = begin(connection, run, again_share=0.5)
    sittings = reading.list_sittings(connection, readers["anna"].id)
    again = next(one for one in sittings if one.sitting.is_again)
    original = next(one for one in sittings if one.sitting.case == again.sitting.case and not one.sitting.is_again)
    assert original.place < again.place
    read_case(connection, original, by_words)
    assert reading.hold_on_device(connection, again, "laptop").is_revealed


def test_only_unopened_cases_go_to_another_reader_who_does_not_have_them(connection, run):
    _, readers = begin(connection, run, readers=("anna", "ben", "cara"), per_case=1)
    anna, ben = readers["anna"], readers["ben"]
    free, opened = reading.list_sittings(connection, anna.id)[-1], first(connection, ben)
    reading.reassign(connection, free, ben.id)
    assert reading.list_sittings(connection, ben.id)[-1].id == free.id
    with pytest.raises(UsageError, match="already been opened"):
        reading.reassign(connection, opened, anna.id)


def test_agreement_is_that_of_the_tables_by_the_same_code(connection, run, tmp_path):
    study, readers = begin(connection, run, again_share=0.25, planted_share=0.25)
    read_all(connection, readers["anna"], by_words)
    read_all(connection, readers["ben"], lambda place, item: WRONG if place == 0 else by_words(place, item))
    done = results.read_done(connection, study)
    found = results.measure_study(study, done)[str(run)]
    out = tmp_path / "out"
    written = results.write_study(study, done, out)
    cases = Run.open(run).cases()
    by_files, problems = measure_agreement(run, written, cases, slices=slice_cases(cases.values()), key=key_path(out))
    assert msgspec.to_builtins(by_files) == msgspec.to_builtins(found)
    assert not [one for one in problems if one.kind != "other_run"]
    assert {"anna", "ben"} <= set(found.raters)
    assert {score.reader for score in found.checks} == {"anna", "ben"}


def test_progress_counts_what_is_done_and_how_long_it_took(connection, run):
    study, readers = begin(connection, run)
    sittings = reading.list_sittings(connection, readers["anna"].id)
    for one in sittings[:2]:
        read_case(connection, one, by_words)
    anna, ben = results.read_progress(connection, study)
    assert (anna.done, anna.total, anna.units_done, ben.done) == (2, 4, 6, 0)
    assert anna.seconds_per_unit == 12.0 and anna.hours == pytest.approx((2 * 40 + 6 * 12) / 3600)
    read_case(connection, sittings[2], lambda *_: WRONG)
    drift = results.measure_drift(results.read_done(connection, study))
    assert [part.part for part in drift] == [1, 2, 3] and drift[0].held_true > drift[2].held_true == 0


def test_a_human_baseline_asks_for_the_diagnosis_alone(connection, run):
    study, readers = begin(connection, run, runs=(), kinds=(), per_case=2)
    cases = Run.open(run).cases()
    for found in reading.list_sittings(connection, readers["anna"].id):
        reading.hold_on_device(connection, found, "laptop")
        right = cases[found.sitting.case].reference.answer
        reading.commit_diagnosis(connection, found, right, 4, seconds=20.0)
        assert reading.submit_sitting(connection, found, "laptop") == []
    measured = results.measure_baseline(study, results.read_done(connection, study))
    assert measured.readers["anna"].value == 1.0 and "ben" not in measured.readers


def test_adjudication_shows_only_what_differs_and_not_whose_it_is(connection, run):
    study, readers = begin(connection, run, cases=1, again_share=1.0, planted_share=1.0)
    read_all(connection, readers["anna"], by_words)
    read_all(connection, readers["ben"], lambda place, item: WRONG if place == 0 else by_words(place, item))
    with pytest.raises(UsageError, match="is a reader in this study"):
        adjudication.open_adjudication(connection, study, "anna")
    assert adjudication.open_adjudication(connection, study, "cara") == 1
    ((_, cara),) = setup.studies_read_by(connection, "cara")
    study = setup.find_study(connection, study.token, with_key=True)
    assert cara.is_adjudicator
    (found,) = reading.list_sittings(connection, cara.id)
    items = found.sitting.revealed.texts[0].items
    assert [item.text for item in items] == ["There is a mass in the left lung."]
    frozen = adjudication.read_frozen(connection, found.id)
    assert sorted(cells["factual"] for cells in frozen[items[0].code]) == ["contradicted", "supported"]
    assert not {"anna", "ben"} & set(json.dumps([frozen, msgspec.to_builtins(found.sitting)]).replace('"', " ").split())
    read_case(connection, found, lambda *_: SUPPORTED)
    settled = adjudication.settle_study(study, results.read_done(connection, study))
    assert [one.adjudicated for one in settled] == [SUPPORTED, None, None]
    assert (settled[0].first["factual"], settled[0].second["factual"]) == ("supported", "contradicted")
    # The first readings alone make the agreement.
    assert "cara" not in results.measure_study(study, results.read_done(connection, study))[str(run)].raters


def test_many_saves_at_once_lose_no_update(engine, run):
    with engine.begin() as connection:
        _, readers = begin(connection, run)
        found = reading.commit_diagnosis(connection, first(connection, readers["anna"]), "A", 1, seconds=1.0)
    item = found.sitting.revealed.texts[0].items[0].code
    answers: list[object] = []

    def save(number: int) -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 20000")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            answers.append(
                save_mark(connection, found, change(item, {"note": str(number)}, key=f"k{number}"), "laptop")
            )
            connection.commit()

    threads = [threading.Thread(target=save, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, SavedMark) for one in answers) == 1
    assert sum(isinstance(one, SaveConflict) for one in answers) == 11


def test_every_kind_says_what_is_missing():
    for kind in KINDS.values():
        for form in ("step", "sentence", "education"):
            assert kind.gaps(form, {})
    assert KINDS["discussion"].gaps("education", {"score": "0"}) == ("zero",)
    assert KINDS["discussion"].gaps("education", {"score": "1"}) == ()
    assert KINDS["steps"].gaps("step", SUPPORTED) == KINDS["steps"].gaps("step", WRONG) == ()
