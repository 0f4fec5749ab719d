"""`medthink serve` in a real browser: hostile cases and models, both themes, by keyboard."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import expect

from chromium import open_chromium
from made_runs import make_run
from medthink.board.checking import LoadedBenchmark
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.board.submissions import ModelDescription
from medthink.cases.case import Case
from medthink.core.jsonio import write_jsonl
from medthink.store.engine import Store, store_url
from medthink.web.app.images import Renditions
from medthink.web.app.security import loopback_hosts
from medthink.web.app.server import make_server, open_port
from medthink.web.serve import open_app, serve_application
from payloads import PAYLOADS
from small_benchmark import make_row, picture

pytestmark = pytest.mark.browser

CASES = 5
SHARE = -(-len(PAYLOADS) // CASES)
SCRIPT = "<script>window.__xss=1</script><img src=x onerror=alert(1)>"


class Served(NamedTuple):
    """A house that answers at an address."""

    address: str
    codes: list[str]


def hostile_row(number: int) -> dict[str, Any]:
    row = make_row(number, 2)
    mine = PAYLOADS[(number - 100) * SHARE : (number - 99) * SHARE]
    text = "\n".join(mine)
    row |= {name: f"{name} {text}" for name in ("CLINICAL_HISTORY", "IMAGING_FINDINGS", "discussion")}
    row |= {"options": {letter: f"{letter} {' '.join(mine[at::5])}" for at, letter in enumerate("ABCDE")}}
    labels = ("ICD Chapter", "ICD Block", "ICD Category", "interval_text", "image_01_modality", "image_01_sub_modality")
    row |= {name: f"{name} {' '.join(mine)}" for name in labels}
    return row | {"image_01_caption": text, "is_longitudinal": True, "timepoint_count": 2}


def hostile_words(case: Case) -> str:
    """What a model writes about a case: as hostile as the case itself."""
    return "\n".join(PAYLOADS[(case.id - 100) * SHARE : (case.id - 99) * SHARE])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("serve")
    bench = root / "bench"
    write_jsonl(bench / "test.jsonl", [hostile_row(number) for number in range(100, 100 + CASES)])
    for number in range(100, 100 + CASES):
        (bench / f"images/case{number:05d}").mkdir(parents=True)
        for slot in (1, 2):
            (bench / f"images/case{number:05d}/i{number}x{slot}.jpg").write_bytes(picture(number * 10 + slot))
    store, held = Store(store_url(root / "board.sqlite")), LoadedBenchmark.open(bench, "test")
    for place, skill in enumerate((0.9, 0.1)):
        run = make_run(
            root / f"run{place}", bench, model=f"{SCRIPT}{place}", skill=skill, task="twi", words=hostile_words
        )
        about = ModelDescription(organisation=SCRIPT, effort=SCRIPT, notes=SCRIPT, family=SCRIPT)
        addition = DirectSubmission(source=run, team=SCRIPT, about=about, allows_download=True)
        add_to_board(store, held, addition, actor="test", name=SCRIPT)
    house = open_app(store, bench, "test")
    opened = open_port(None)
    port = opened.getsockname()[1]
    app = serve_application(house, hosts=sorted(loopback_hosts(port)), renditions=Renditions(root / "cache"))
    server = make_server(app)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
    thread.start()
    codes = [house.bench.code(number) for number in range(100, 100 + CASES)]
    yield Served(f"http://127.0.0.1:{port}", codes)
    server.should_exit = True
    thread.join(timeout=120)
    store.close()
    opened.close()


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Any]:
    with open_chromium() as opened:
        yield opened


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_reader_walks_through_every_page(served: Served, browser: Any, scheme: str, width: int):
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, said, asked, found = context.new_page(), [], [], {}
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))

    def look(name: str) -> None:
        page.wait_for_timeout(150)
        violations = Axe().run(page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"][:150]) for one in violations if one["impact"] != "minor"]
        over = page.evaluate("document.documentElement.scrollWidth") > width
        found.update({name: (serious, over)} if over or any(one[0] for one in serious) else {})

    for path in ("/", "/?col=-&col=team&sort=team", "/models/1", "/compare?a=1&b=2", "/cases", "/readers"):
        page.goto(served.address + path)
        page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        look(path)
    for code in served.codes:
        page.goto(f"{served.address}/cases/{code}")
        blind = page.content()
        assert "IMAGING_FINDINGS" not in blind and "Case number" not in blind
        if code == served.codes[0]:
            look("blind")
        page.keyboard.press("3")
        assert page.locator("[name=option]:checked").get_attribute("value") == "C"
        page.keyboard.press("Enter")
        expect(page.locator("h2").first).to_contain_text("You answered C")
        expect(page.locator(".step-pair").first).to_contain_text("Step 1")
        assert "IMAGING_FINDINGS" in page.content()
    look("revealed")
    page.goto(f"{served.address}/cases?difficulty=hard&wrong=me")
    look("filtered")
    page.goto(served.address + "/readers")
    look("readers")
    context.close()
    assert found == {}
    assert said == []
    assert [url for url in asked if not url.startswith((f"{served.address}/", "data:"))] == []


def test_a_case_is_read_without_script(served: Served, browser: Any):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(served.address + "/cases")
    page.locator(".case-card h2 a").first.click()
    assert page.locator("#grid img").count() == 2
    page.locator("[name=option][value=B]").check(force=True)
    page.click("text=Commit and reveal")
    assert "You answered B" in page.locator("h2").first.inner_text()
    context.close()
