"""Handing in, in a real browser: hostile texts in every field, both themes, without script, by keyboard alone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import expect

from chromium import open_chromium
from medthink.accounts.account import Account, NewAccount, add_account
from medthink.accounts.invitations import invite, invite_reader
from medthink.accounts.sessions import begin_session, make_token
from medthink.board.checking import LoadedBenchmark
from medthink.board.moderation import annotate, flag, publish, request_approval, return_to_team, withdraw
from medthink.board.queue import Upload, receive
from medthink.board.submissions import ModelDescription, list_submissions
from medthink.board.worker import process_next
from medthink.core.markup import clean
from medthink.web.app.access import COOKIE
from medthink.web.app.server import ServeSettings
from payloads import PAYLOADS
from people import Board
from small_benchmark import write_benchmark

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("cheap_passwords")]
CASES = 6
# What the store takes as the name of a model; the others are refused, and stand in problems instead.
NAMES = [text for text in PAYLOADS if len(text) <= 200 and clean(text) == text]
SCRIPT = "<script>window.__xss=1</script>"


class Scene(NamedTuple):
    """A served board full of hostile texts, and who may sign in to it."""

    address: str
    board: Board
    boss: Account
    ann: Account
    links: list[str]
    tmp: Path


def lines(letter: str = "A", **fields: str) -> bytes:
    rows = [{"title": f"Case number {number}", "prediction": letter, **fields} for number in range(100, 100 + CASES)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def bad_lines(payloads: list[str]) -> bytes:
    return "".join(json.dumps({"title": "Case number 100", "prediction": text}) + "\n" for text in payloads).encode()


def fill(board: Board, held: LoadedBenchmark) -> None:
    """Submissions in every state, a hostile text in every field that somebody else can write."""
    benchmark = board.served.benchmark.id

    def send(number: int, data: bytes) -> str:
        about = ModelDescription(organisation=NAMES[number], family=NAMES[number + 1], effort=NAMES[number + 2],
                      notes="\n".join(NAMES[number : number + 20])[:1900])  # fmt: skip
        upload = Upload(benchmark_id=benchmark, team=f"{SCRIPT}team", model=NAMES[number], data=data, about=about)
        return receive(board.store, upload).token

    states = [send(place * 7, lines("ABCDE"[place % 5], n=str(place))) for place in range(7)]
    states += [send(100 + at // 5, bad_lines(PAYLOADS[at : at + 100])) for at in range(0, 500, 100)]
    while process_next(board.store, {benchmark: held}):
        pass
    for token in states[:4]:
        publish(board.store, token, actor=SCRIPT)
    annotate(board.store, states[0], actor=SCRIPT, words=NAMES[3])
    flag(board.store, states[0], actor=SCRIPT, why=NAMES[4])
    withdraw(board.store, states[1], actor=SCRIPT, why=NAMES[5])
    request_approval(board.store, states[4], actor=SCRIPT)
    request_approval(board.store, states[5], actor=SCRIPT)
    return_to_team(board.store, states[5], actor=SCRIPT, why=NAMES[6])
    failed = send(150, lines("A", n="failed"))
    process_next(board.store, {})
    assert failed
    send(151, lines("A", n="waiting"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("submit")
    bench = write_benchmark(root / "bench", cases=CASES)
    board = Board(
        root, bench, ServeSettings(sign_up="open", uploads_per_day=100, publications_per_week=100, needs_approval=True)
    )
    ann = board.add("ann", "submitter", team=f"{SCRIPT}team")
    boss = board.add("boss", "maintainer", "reader", "coordinator")
    for number, text in enumerate(text for text in NAMES if text.isprintable() and len(text) < 100):
        if number < 40:
            add_account(board.store, NewAccount(name=f"n{number}", shown_name=text, roles=("reader",)), actor=SCRIPT)
    make_token(board.store, ann, NAMES[8], ["read"], days=3)
    invite(board.store, ["reader"], actor=SCRIPT, team=NAMES[9], about=NAMES[10])
    links = [invite(board.store, ["submitter"], actor=SCRIPT, team=f"{SCRIPT}team")]
    links.append(invite_reader(board.store, "reader-x", shown_name=NAMES[30][:90], actor=SCRIPT)[1])
    fill(board, LoadedBenchmark.open(bench))
    with board.serving() as address:
        yield Scene(address, board, boss, ann, links, root)
    board.store.close()


@pytest.fixture(scope="module")
def browser(scene: Scene) -> Iterator[Any]:
    with open_chromium() as opened:
        yield opened


class Walk:
    """A page that is watched: what it says, asks for and does that it should not."""

    def __init__(self, scene: Scene, browser: Any, account: Account | None, **options: Any) -> None:
        self.address = scene.address
        self.context = browser.new_context(**options)
        if account is not None:
            session = begin_session(scene.board.store, account)
            self.context.add_cookies([{"name": COOKIE, "value": session, "url": scene.address}])
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.found: dict[str, Any] = {}
        self.page.on("console", lambda message: self.hear(message.text))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def hear(self, text: str) -> None:
        # What the browser notes about a page that is not there; the page itself is looked at like any other.
        if "status of 404" not in text:
            self.said.append(text)

    def look(self, path: str) -> None:
        from axe_playwright_python.sync_playwright import Axe

        self.page.goto(self.address + path)
        self.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        violations = Axe().run(self.page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"][:150]) for one in violations if one["impact"] != "minor"]
        width = self.page.viewport_size["width"]
        is_over = self.page.evaluate("document.documentElement.scrollWidth") > width
        if serious or is_over:
            self.found[path] = (serious, is_over)

    def end(self) -> None:
        ran = self.page.evaluate("window.__xss ?? 0")
        self.context.close()
        assert self.found == {}
        assert (self.said, ran) == ([], 0)
        assert [url for url in self.asked if not url.startswith((f"{self.address}/", "data:"))] == []


def paths_of(scene: Scene, who: str) -> list[str]:
    visitor = ["/", "/submit", "/sign-in", "/sign-up", f"/invitation/{scene.links[0]}", f"/invitation/{scene.links[1]}"]
    if who == "visitor":
        return [*visitor, "/nothing", "/models/1"]
    own = [f"/submissions/{one.token}" for one in list_submissions(scene.board.store)]
    if who == "submitter":
        return ["/submit", "/account", *own]
    return ["/people", "/queue", "/account", own[0], own[4]]


@pytest.mark.parametrize("who", ["visitor", "submitter", "maintainer"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_is_safe_and_accessible(scene: Scene, browser: Any, who: str, scheme: str, width: int) -> None:
    account = {"visitor": None, "submitter": scene.ann, "maintainer": scene.boss}[who]
    walk = Walk(scene, browser, account, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for path in paths_of(scene, who):
        walk.look(path)
    walk.end()


def test_a_file_is_handed_in_and_followed(scene: Scene, browser: Any) -> None:
    (scene.tmp / "good.jsonl").write_bytes(lines("B", n="followed"))
    walk = Walk(scene, browser, scene.ann)
    page = walk.page
    page.goto(scene.address + "/submit")
    page.set_input_files("input[type=file]", scene.tmp / "good.jsonl")
    expect(page.locator("[data-file-name]")).to_contain_text("good.jsonl")
    page.fill("[name=model]", "followed-7b")
    page.click("form button:has-text('Submit')")
    expect(page.locator("h1")).to_contain_text("followed-7b")
    expect(page.locator("#now")).to_contain_text("in the queue")
    held = LoadedBenchmark.open(scene.tmp / "bench")
    while process_next(scene.board.store, {scene.board.served.benchmark.id: held}):
        pass
    expect(page.locator("#now")).to_contain_text("Only your team and the maintainers see this")
    page.click("text=Ask for publication")
    expect(page.locator("#now")).to_contain_text("waiting for approval")
    walk.end()


def test_too_large_a_file_is_refused_in_the_browser(scene: Scene, browser: Any) -> None:
    walk = Walk(scene, browser, scene.ann)
    walk.page.goto(scene.address + "/submit")
    walk.page.evaluate("document.querySelector('[data-upload]').dataset.largest = 10")
    (scene.tmp / "large.jsonl").write_bytes(lines())
    walk.page.set_input_files("input[type=file]", scene.tmp / "large.jsonl")
    expect(walk.page.locator("[data-upload-problem]")).to_contain_text("at most")
    walk.end()


def test_everything_works_without_script(scene: Scene, browser: Any) -> None:
    (scene.tmp / "plain.jsonl").write_bytes(lines("C", n="plain"))
    scene.board.add("plain", "submitter", team="Plain", password="granite window seven")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(scene.address + "/submit")
    page.click("text=Sign in to submit")
    page.fill("[name=name]", "plain")
    page.fill("[name=password]", "granite window seven")
    page.click("button:text('Sign in')")
    page.set_input_files("input[type=file]", scene.tmp / "plain.jsonl")
    page.fill("[name=model]", "plain-7b")
    page.click("form button:has-text('Submit')")
    assert "in the queue" in page.locator("#now").inner_text()
    assert re.search(r'http-equiv="refresh"', page.content())
    context.close()


@pytest.mark.parametrize("path", ["/submit", "/account", "/people", "/queue", "/sign-in"])
def test_everything_is_reached_by_the_keyboard(scene: Scene, browser: Any, path: str) -> None:
    who = {"/sign-in": None, "/people": scene.boss, "/queue": scene.boss}
    walk = Walk(scene, browser, who.get(path, scene.ann))
    page = walk.page
    page.goto(scene.address + path)
    count = page.evaluate(
        """() => {
          const kinds = "a[href], button, input, select, textarea, summary, [tabindex='0']";
          const shown = [...document.querySelectorAll(kinds)].filter(
            (one) => one.tabIndex >= 0 && !one.disabled && one.type !== "hidden" && one.checkVisibility());
          shown.forEach((one) => { one.dataset.todo = ""; });
          document.addEventListener("focusin", (event) => { delete event.target.dataset.todo; });
          return shown.length;
        }"""
    )
    for _ in range(count + 5):
        page.keyboard.press("Tab")
    left = page.evaluate("[...document.querySelectorAll('[data-todo]')].map((one) => one.outerHTML.slice(0, 100))")
    assert left == [] and count > 5
    walk.end()
