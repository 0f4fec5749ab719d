"""`medthink view` in a real browser: nothing runs that is not ours, nothing leaves, everybody can use it."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import expect

from chromium import open_chromium
from made_runs import make_run
from medthink.cli.command import run_command
from medthink.core.jsonio import write_jsonl
from medthink.core.markup import clean
from medthink.web.app.images import Renditions
from medthink.web.app.security import loopback_hosts
from medthink.web.app.server import make_server, open_port
from medthink.web.runs.viewer import Viewer, view_application
from payloads import PAYLOADS
from small_benchmark import make_row, picture

pytestmark = pytest.mark.browser

CASES = 20
SHARE = -(-len(PAYLOADS) // CASES)
NAMES = ("<script>window.__xss=1<", "'\" onmouseover=alert(1) x='")


def for_case(number: int) -> str:
    """The payloads that go through every text of this case; all cases together carry all of them."""
    return "\n".join(PAYLOADS[(number - 100) * SHARE : (number - 99) * SHARE])


def for_whole(case: Any) -> str:
    return for_case(case.id)


def hostile_row(number: int) -> dict[str, Any]:
    row, text = make_row(number, 3), for_case(number)
    lines = text.split("\n")
    row |= {
        "CLINICAL_HISTORY": f"history {text}",
        "IMAGING_FINDINGS": f"findings {text}",
        "discussion": f"discussion {text}",
        "options": {letter: f"{letter} {' '.join(lines[at::5])}" for at, letter in enumerate("ABCDE")},
        "correct_answer_text": f"answer {lines[0]}",
        "ICD Chapter": lines[0],
        "image_01_caption": f"caption {text}",
        "image_01_modality": lines[-1],
        "image_02_modality": "CT",
    }
    return row


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("view")
    bench = root / "<img src=x onerror=alert(1)>"
    numbers = range(100, 100 + CASES)
    write_jsonl(bench / "test.jsonl", [hostile_row(number) for number in numbers])
    for number in numbers:
        place = bench / f"images/case{number:05d}"
        place.mkdir(parents=True)
        for slot in (1, 2, 3):
            (place / f"i{number}x{slot}.jpg").write_bytes(picture(number * 10 + slot))
    half = len(PAYLOADS) // 2
    made = [
        {"task": "twi", "model": "\n".join(PAYLOADS[:half]), "skill": 0.5},
        {"task": "twi", "model": "\n".join(PAYLOADS[half:]), "silent": 8, "image_share": 0.4},
    ]
    for name, options in zip(NAMES, made, strict=True):
        # A judge takes no rationale of more than some steps.
        words = (lambda case: " ".join(for_case(case.id).split("\n")[:6])) if name == NAMES[0] else for_whole
        make_run(root / "runs" / name, bench, words=words, **options)
    assert run_command(["judge", str(root / "runs" / NAMES[0]), "--judge", "baseline/rules"]) == 0
    broken = root / "runs" / "<svg onload=alert(1)>"
    broken.mkdir()
    (broken / "run.json").write_text('{"<img src=x onerror=alert(1)>": 1}')
    return root / "runs"


class Served(NamedTuple):
    """A viewer that answers at an address."""

    viewer: Viewer
    address: str

    def at(self, path: str) -> str:
        """The address of a page; `{0}` and `{1}` stand for the two runs."""
        slugs = {run.name: run.slug for run in self.viewer.shelf.runs()}
        return self.address + path.format(*(slugs[name] for name in NAMES))


@pytest.fixture(scope="module")
def served(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    opened = open_port(None)
    port = opened.getsockname()[1]
    viewer = Viewer([folder])
    renditions = Renditions(tmp_path_factory.mktemp("cache"))
    server = make_server(view_application(viewer, hosts=sorted(loopback_hosts(port)), renditions=renditions))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
    thread.start()
    yield Served(viewer, f"http://127.0.0.1:{port}")
    server.should_exit = True
    thread.join(timeout=120)
    viewer.close()
    opened.close()


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Any]:
    with open_chromium() as opened:
        yield opened


PAGES = {
    "runs": "/",
    "run": "/runs/{0}?against={1}",
    "case": "/runs/{0}/cases/105?against={1}",
    "unparsed case": "/runs/{1}/cases/100",
    "versus": "/versus/{0}/{1}",
    "choose": "/versus",
    "missing": "/runs/nothing",
}


OVER = """width => [...document.querySelectorAll('main *')]
  .filter(one => !one.closest('.table-wrap, .strip, .said') && one.getBoundingClientRect().right > width + 1)
  .map(one => one.outerHTML.slice(0, 90)).slice(0, 3)"""


class Tab:
    """A tab, with everything it asked for, said and tried."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)

    def _hear(self, message: Any) -> None:
        if "404" not in message.text:  # Chromium says so of the page that is meant to be missing
            self.said.append(message.text)

    def _dismiss(self, dialog: Any) -> None:
        self.said.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def foreign(self, address: str) -> list[str]:
        """What was asked of anybody else."""
        return [url for url in self.asked if not url.startswith((f"{address}/", "data:"))]


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    opened = Tab(browser)
    yield opened
    opened.context.close()


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_nothing_runs_and_nothing_leaves(served: Served, tab: Tab, path: str):
    tab.page.goto(served.at(path))
    tab.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    for place in range(0, 900, 150):
        tab.page.mouse.move(place, place)
    tab.page.keyboard.press("Tab")
    tab.page.wait_for_timeout(200)
    assert tab.page.evaluate("window.__xss") is None
    assert tab.said == []  # a violation of the policy would be said here
    assert tab.foreign(served.address) == []
    assert tab.page.title().endswith(" · MedThink")


def test_every_payload_is_shown_as_text(served: Served, tab: Tab):
    shown = ""
    for number in range(100, 100 + CASES):
        tab.page.goto(served.at(f"/runs/{{0}}/cases/{number}"))
        shown += tab.page.evaluate("document.body.textContent")
    assert [payload for payload in PAYLOADS if shown.count(clean(payload)) < 3] == []
    assert tab.page.evaluate("window.__xss") is None and tab.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(served: Served, browser: Any, scheme: str, width: int):
    from axe_playwright_python.sync_playwright import Axe

    opened = Tab(browser, color_scheme=scheme, bypass_csp=True)
    opened.page.set_viewport_size({"width": width, "height": 900})
    found = {}
    for name, path in PAGES.items():
        opened.page.goto(served.at(path))
        opened.page.wait_for_timeout(150)
        violations = Axe().run(opened.page).response["violations"]
        serious = [
            (one["id"], one["nodes"][0]["html"][:200]) for one in violations if one["impact"] in ("serious", "critical")
        ]
        if serious:
            found[name] = serious
    opened.context.close()
    assert found == {}


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_runs_over_the_side(served: Served, tab: Tab, width: int):
    tab.page.set_viewport_size({"width": width, "height": 900})
    wide = {}
    for name, path in PAGES.items():
        tab.page.goto(served.at(path))
        if tab.page.evaluate("document.documentElement.scrollWidth") > width:
            wide[name] = tab.page.evaluate(OVER, width)
    assert wide == {}


def test_everything_works_without_script(served: Served, browser: Any):
    opened = Tab(browser, java_script_enabled=False)
    page = opened.page
    page.goto(served.at("/runs/{0}"))
    page.select_option("[name=result]", "wrong")
    page.click("text=Show")
    wrong = page.locator("[data-row] th a").all_inner_texts()
    assert "result=wrong" in page.url and 0 < len(wrong) < CASES
    page.locator("[data-row] th a").first.click()
    assert page.locator("h1").inner_text() == f"Case {wrong[0]}"
    assert page.locator("#grid img").count() == 3
    page.click("text=Next")
    assert page.locator("h1").inner_text() == f"Case {wrong[1]}"
    page.locator("summary").first.click()
    assert page.locator(".call .said").first.is_visible()
    page.goto(served.at("/versus"))
    page.click("main >> text=Compare >> nth=-1")
    assert "/versus/" in page.url
    opened.context.close()


def test_filters_and_sorting_follow_at_once_and_stand_in_the_address(served: Served, tab: Tab):
    page = tab.page
    page.goto(served.at("/runs/{0}"))
    page.fill("[name=q]", "105")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert "q=105" in page.url
    page.fill("[name=q]", "")
    expect(page.locator("tr[data-row]")).to_have_count(CASES)
    page.click("thead >> text=Case")
    expect(page.locator("th[aria-sort=ascending]")).to_have_count(1)
    page.click("thead >> text=Case")
    expect(page.locator("[data-row] th a").first).to_have_text(str(99 + CASES))
    page.reload()
    assert page.locator("[data-row] th a").first.inner_text() == str(99 + CASES)


def test_a_case_is_read_by_keyboard_alone(served: Served, tab: Tab):
    page = tab.page
    page.goto(served.at("/runs/{0}"))
    page.keyboard.press("/")
    page.keyboard.type("103")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/cases/103?*")
    panes = page.locator(".pane:not([hidden])")
    expect(panes.nth(2)).to_be_visible()
    page.keyboard.press("ArrowRight")
    assert "is-active" in (panes.nth(1).get_attribute("class") or "")
    page.keyboard.press("i")
    assert "inverted" in panes.nth(1).inner_text()
    page.keyboard.press("e")
    assert page.locator(".call[open]").count() == page.locator(".call").count() > 0
    page.keyboard.press("?")
    assert page.locator("dialog[open]").is_visible()
    page.keyboard.press("Escape")
    page.goto(served.at("/runs/{0}/cases/103"))
    page.keyboard.press("j")
    page.wait_for_url("**/cases/104")
    assert tab.said == []


def test_every_control_can_be_reached_by_tab(served: Served, tab: Tab):
    page = tab.page
    for path in (PAGES["runs"], PAGES["run"], PAGES["case"], PAGES["versus"]):
        page.goto(served.at(path))
        page.wait_for_timeout(100)
        lost = page.evaluate(
            """() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary')]
                 .filter(one => one.checkVisibility() && one.tabIndex < 0 && !one.closest('.reading-grid'))
                 .map(one => one.outerHTML.slice(0, 120))"""
        )
        assert lost == [], path


def test_a_page_follows_a_run_under_way(served: Served, tab: Tab, folder: Path):
    from medthink.runs.ledger.lock import lock_run

    page = tab.page
    page.goto(served.at("/runs/{1}"))
    assert page.locator("#live .state").inner_text() == "finished"
    with lock_run(folder / NAMES[1]):
        page.wait_for_timeout(1100)  # the shelf looks at its folders once a second
        page.reload()
        expect(page.locator("#live .state").first).to_have_text("running")
    expect(page.locator("#live .state").first).to_have_text("finished")
    assert tab.said == []
