"""The reading room in a real browser: a whole case by keyboard, offline and back, two devices, both themes."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import expect

from chromium import open_chromium
from medthink.accounts.sessions import begin_session
from medthink.readers.studies import reading, setup
from medthink.web.app.access import COOKIE
from medthink.web.app.images import Renditions
from medthink.web.app.security import loopback_hosts
from medthink.web.app.server import make_server, open_port
from medthink.web.serve import serve_application
from payloads import PAYLOADS
from reading_room import Room, make_discussed_runs, make_judged_run, open_room

pytestmark = pytest.mark.browser

HOSTILE = " ".join(f"The margin {payload} is smooth." for payload in PAYLOADS[:5]) + " So the diagnosis follows."


class ServedRoom(NamedTuple):
    """A reading room that answers at an address."""

    room: Room
    address: str

    def context(self, browser: Any, account: Any, **options: Any) -> Any:
        """A browser window in which this account is signed in."""
        made = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        made.add_cookies(
            [{"name": COOKIE, "value": begin_session(self.room.board.store, account), "url": self.address}]
        )
        return made

    def open(self, context: Any, name: str, place: int = 0) -> Any:
        """A page with a reader's case, ready to be read."""
        page = context.new_page()
        page.goto(self.address + self.room.address(name, place))
        page.wait_for_selector("html[data-ready=room]")
        return page

    def marks(self, name: str, place: int = 0) -> dict[str, Any]:
        """What the server has of a reader's case."""
        with self.room.board.store.read() as connection:
            reader = setup.find_reader(connection, self.room.study.id, name)
            assert reader is not None
            return reading.read_marks(connection, reading.list_sittings(connection, reader.id)[place].id)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judged_run(tmp_path_factory.mktemp("room"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_chromium() as opened:
        yield opened


@contextmanager
def serve(root: Path, run: Path, **plan: Any) -> Iterator[ServedRoom]:
    with open_room(root, run, **plan) as room:
        opened = open_port(None)
        port = opened.getsockname()[1]
        hosts = sorted(loopback_hosts(port))
        server = make_server(serve_application(room.board.served, hosts=hosts, renditions=Renditions(root / "cache")))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
        thread.start()
        try:
            yield ServedRoom(room, f"http://127.0.0.1:{port}")
        finally:
            server.should_exit = True
            thread.join(timeout=120)
            opened.close()


@pytest.fixture
def served(tmp_path: Path, run: Path) -> Iterator[ServedRoom]:
    with serve(tmp_path, run) as made:
        yield made


def commit(page: Any, presses: list[str]) -> None:
    for key in ("2", "8", "Enter"):
        press(page, presses, key)
    page.wait_for_selector("html[data-ready=room] .expert")


def press(page: Any, presses: list[str], *keys: str) -> None:
    for key in keys:
        presses.append(key)
        page.keyboard.press(key)


def test_a_case_of_six_steps_takes_fewer_than_forty_keys_and_no_mouse(served: ServedRoom, browser: Any):
    context = served.context(browser, served.room.anna)
    page, presses = served.open(context, "anna"), []
    commit(page, presses)
    press(page, presses, "Enter")
    for number in range(6):
        expect(page.locator(".desk-end")).to_contain_text(f"{number + 1} of 6")
        if number in (1, 4):
            press(page, presses, "2", "q", "4", "d", "Enter")
        else:
            press(page, presses, "1", "w", "Enter")
    expect(page.locator("#work h2").first).to_contain_text("What was missed?")
    press(page, presses, "1", "Enter")
    expect(page.locator("#work h2").first).to_have_text("Complete")
    press(page, presses, "Enter")
    expect(page.locator("#work h2").first).to_have_text("Thank you")
    press(page, presses, "Enter")
    page.wait_for_url(f"**{served.room.address('anna', 1)}")
    assert len(presses) < 40
    marks = served.marks("anna")
    assert [mark.cells.get("factual") for mark in marks.values()].count("contradicted") == 2
    assert "missed" in [mark.cells.get("finding") for mark in marks.values()]
    context.close()


def test_the_images_of_the_next_case_are_there_before_it_is_opened(served: ServedRoom, browser: Any):
    context = served.context(browser, served.room.anna)
    page = context.new_page()
    with page.expect_request_finished(lambda request: "/images/" in request.url) as loaded:
        page.goto(f"{served.address}/room/{served.room.study.token}")
    page.goto(served.address + served.room.address("anna"))
    page.wait_for_selector("html[data-ready=room]")
    (sent,) = page.evaluate("url => performance.getEntriesByName(url).map(one => one.transferSize)", loaded.value.url)
    assert sent == 0, "taken from the browser's cache"
    context.close()


@pytest.fixture(scope="module")
def discussed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_discussed_runs(tmp_path_factory.mktemp("discussed"))


# A laptop, and a tablet held upright.
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (820, 1180)])
def test_a_discussion_is_judged_sentence_by_sentence_and_scored_by_keyboard(
    tmp_path: Path, discussed: tuple[Path, Path], browser: Any, width: int, height: int
):
    with serve(tmp_path, discussed[0], kinds=("discussion",)) as served:
        context = served.context(browser, served.room.anna, viewport={"width": width, "height": height})
        page, presses = served.open(context, "anna"), []
        commit(page, presses)
        press(page, presses, "Enter", "1", "Enter", "2", "Enter", "3", "Enter")
        expect(page.locator("#work h2").first).to_have_text("What does it teach?")
        expect(page.locator(".score-row").first).to_contain_text("the kind of disease, its cause or mechanism")
        press(page, presses, "2", "0")
        expect(page.locator(".score-row[aria-current]")).to_contain_text("Why 0?")
        assert_fine(page, width)
        press(page, presses, "w", "1", "k", "2", "1", "Enter")
        expect(page.locator("[data-say]")).to_contain_text("Open: Score")
        press(page, presses, "0", "a", "Enter")
        expect(page.locator("#work h2").first).to_have_text("Complete")
        press(page, presses, "Enter")
        expect(page.locator("#work h2").first).to_have_text("Thank you")
        cells = [mark.cells for mark in served.marks("anna").values()]
        assert sorted(one["label"] for one in cells if "label" in one) == ["correct", "incorrect", "unverifiable"]
        scores = sorted((one["score"], one.get("zero", "")) for one in cells if "score" in one)
        assert scores == [("0", "absent"), ("0", "wrong"), ("1", ""), ("2", ""), ("2", "")]
        context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (820, 1180)])
def test_two_discussions_are_compared_by_keyboard_and_nothing_tells_whose_they_are(
    tmp_path: Path, discussed: tuple[Path, Path], browser: Any, width: int, height: int
):
    runs = tuple(map(str, discussed))
    with serve(tmp_path, discussed[0], kinds=("preference",), runs=runs) as served:
        context = served.context(browser, served.room.anna, viewport={"width": width, "height": height})
        page, presses = served.open(context, "anna"), []
        commit(page, presses)
        press(page, presses, "Enter")
        for words in ("Night pain calls for CT.", "Correlate clinically.", "Which would teach a trainee better?"):
            expect(page.locator("#work")).to_contain_text(words)
        assert "server/" not in page.content()
        assert_fine(page, width)
        press(page, presses, "3", "1", "Enter")
        expect(page.locator("#work h2").first).to_have_text("Complete")
        press(page, presses, "Enter")
        expect(page.locator("#work h2").first).to_have_text("Thank you")
        ((_, mark),) = served.marks("anna").items()
        assert mark.cells == {"preferred": "first"}
        context.close()


def assert_fine(page: Any, width: int) -> None:
    """Nothing that axe calls serious, and nothing wider than the window."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:150]) for one in violations if one["impact"] != "minor"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_offline_marks_are_kept_here_and_sent_later(served: ServedRoom, browser: Any):
    context = served.context(browser, served.room.anna)
    page = served.open(context, "anna")
    commit(page, [])
    press(page, [], "Enter")
    context.set_offline(True)
    press(page, [], "1", "w", "Enter", "1", "q")
    expect(page.locator("#save")).to_contain_text("2 stored in this browser, sent when online")
    assert served.marks("anna") == {}
    context.set_offline(False)
    # The page is loaded again before anything is sent: what was kept in the browser is still there.
    page.reload()
    page.wait_for_selector("html[data-ready=room]")
    expect(page.locator("#save")).to_have_text("Saved")
    assert sorted(mark.cells["weight"] for mark in served.marks("anna").values()) == ["contributory", "decisive"]
    context.close()


def test_a_mark_changed_after_a_lost_answer_is_the_one_that_is_saved(served: ServedRoom, browser: Any):
    """The server has saved the first mark, its answer never arrives, and the reader changes the mark."""
    context = served.context(browser, served.room.anna)
    page = served.open(context, "anna")
    commit(page, [])
    press(page, [], "Enter")
    lost: list[Any] = []

    def lose(route: Any) -> None:
        if lost:
            route.continue_()
        else:
            lost.append(route.fetch().status)
            route.abort()

    page.route("**/marks", lose)
    press(page, [], "1")
    expect(page.locator("#save")).to_contain_text("1 stored in this browser")
    (first,) = served.marks("anna").values()
    press(page, [], "2")
    expect(page.locator("#save")).to_have_text("Saved")
    (last,) = served.marks("anna").values()
    assert lost == [200] and last.version == first.version + 1
    assert first.cells["factual"] != last.cells["factual"]
    context.close()


def test_time_counts_only_while_the_reader_does_something(served: ServedRoom, browser: Any):
    """Five seconds at work and half an hour away: the time of the step ends a minute after the last key."""
    context = served.context(browser, served.room.anna)
    page = context.new_page()
    page.clock.install()
    page.goto(served.address + served.room.address("anna"))
    page.wait_for_selector("html[data-ready=room]")
    commit(page, [])
    press(page, [], "Enter")
    page.clock.run_for(5_000)
    press(page, [], "1")
    page.clock.run_for(1_800_000)
    press(page, [], "w")
    page.clock.run_for(1_000)
    expect(page.locator("#save")).to_have_text("Saved")
    press(page, [], "Enter")
    page.clock.run_for(1_000)
    expect(page.locator("#save")).to_have_text("Saved")
    (mark,) = served.marks("anna").values()
    assert 5 <= mark.seconds <= 5 + 60 + 2
    context.close()


def test_a_unit_marked_on_another_device_is_shown_and_the_reader_chooses(served: ServedRoom, browser: Any):
    context = served.context(browser, served.room.anna)
    page, other = served.open(context, "anna"), None
    commit(page, [])
    other = served.open(context, "anna")
    for one in (page, other):
        one.goto(one.url.partition("#")[0] + "#1")
        one.reload()
        one.wait_for_selector("html[data-ready=room]")
    press(other, [], "3")
    expect(other.locator("#save")).to_have_text("Saved")
    press(page, [], "1")
    expect(page.locator("dialog[open]")).to_contain_text("Changed on another device")
    page.get_by_role("button", name="Keep this one").click()
    expect(page.locator("#save")).to_have_text("Saved")
    ((_, mark),) = served.marks("anna").items()
    assert mark.cells["factual"] == "supported" and mark.version == 2
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1024), ("dark", 390)])
def test_every_page_of_the_room_is_accessible_and_asks_nobody_else(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, browser: Any, scheme: str, width: int
):
    from axe_playwright_python.sync_playwright import Axe

    with serve(tmp_path, make_judged_run(tmp_path_factory.mktemp("hostile"), HOSTILE)) as served:
        said: list[str] = []
        asked: list[str] = []
        found: dict[str, Any] = {}
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        reader = served.context(browser, served.room.anna, **options)
        office = served.context(browser, served.room.cora, **options)

        def look(page: Any, name: str, found: dict[str, Any] = found) -> None:
            page.wait_for_timeout(200)
            violations = Axe().run(page).response["violations"]
            serious = [(one["id"], one["nodes"][0]["html"][:150]) for one in violations if one["impact"] != "minor"]
            over = page.evaluate("document.documentElement.scrollWidth") > width
            found.update({name: (serious, over)} if over or serious else {})

        for context in (reader, office):
            context.on("console", lambda message, said=said: said.append(message.text))
            context.on("request", lambda request, asked=asked: asked.append(request.url))
        page = office.new_page()
        for path in ("/studies", "/studies/new", f"/studies/{served.room.study.token}"):
            page.goto(served.address + path)
            look(page, path)
        page = reader.new_page()
        for path in ("/readings", f"/room/{served.room.study.token}"):
            page.goto(served.address + path)
            look(page, path)
        page = served.open(reader, "anna")
        look(page, "case")
        commit(page, [])
        look(page, "reveal")
        press(page, [], "Enter", "2", "h")
        look(page, "step")
        page.goto(page.url.partition("#")[0] + "#99")
        page.reload()
        page.wait_for_selector("html[data-ready=room]")
        look(page, "end")
        assert not page.evaluate("Boolean(window.__xss)")
        reader.close()
        office.close()
        assert found == {}
        assert said == []
        assert [url for url in asked if not url.startswith((f"{served.address}/", "data:"))] == []
