"""The report in a real browser: five hundred payloads through every text, and nothing runs and nothing leaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chromium import open_chromium
from made_runs import make_run
from medthink.cli.command import run_command
from medthink.core.jsonio import write_jsonl
from medthink.core.markup import clean
from medthink.report.cases import MOST_CASES
from medthink.report.guessing import audit_group
from medthink.report.judged import score_judgements
from medthink.report.page import report_page
from medthink.report.runs import group_entries, load_entries
from payloads import ACTS, LISTED, PAYLOADS, SHAPES
from small_benchmark import make_row, picture

pytestmark = pytest.mark.browser

HOSTILE_NAME = "<img src=x onerror=alert(1)>"
SHARE = -(-len(PAYLOADS) // MOST_CASES)


def for_case(number: int) -> str:
    """The payloads that go through every text of this case; all cases together carry all of them."""
    place = number - 100
    return "\n".join(PAYLOADS[place * SHARE : (place + 1) * SHARE])


def hostile_row(number: int) -> dict[str, Any]:
    row, text = make_row(number, 1), for_case(number)
    mine = text.split("\n")
    row |= {
        "CLINICAL_HISTORY": f"history {text}",
        "IMAGING_FINDINGS": f"findings {text}",
        "discussion": f"discussion {text}",
        "options": {letter: f"{letter} {' '.join(mine[at::5])}" for at, letter in enumerate("ABCDE")},
        "correct_answer_text": f"answer {mine[0]}",
        "ICD Chapter": mine[0],
        "image_01_caption": f"caption {text}",
        "image_01_modality": mine[-1],
    }
    return row


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report") / HOSTILE_NAME
    numbers = range(100, 100 + MOST_CASES)
    write_jsonl(root / "test.jsonl", [hostile_row(number) for number in numbers])
    for number in numbers:
        folder = root / f"images/case{number:05d}"
        folder.mkdir(parents=True)
        (folder / f"i{number}x1.jpg").write_bytes(picture(number))
    return root


@pytest.fixture(scope="module")
def report_file(bench: Path) -> Path:
    names = ["<script>window.__xss=1<", "'\" onmouseover=alert(1) x='", "javascript:alert(1)"]
    half = len(PAYLOADS) // 2
    made = [
        {"task": "twi", "model": "\n".join(PAYLOADS[:half]), "skill": 0.0},
        {"task": "answer", "model": "\n".join(PAYLOADS[half:]), "silent": MOST_CASES},
        {"task": "answer", "model": "<svg onload=alert(1)>-7b", "skill": 0.0, "effort": "low"},
    ]
    runs = [
        make_run(bench.parent / name, bench, words=lambda case: for_case(case.id), **options)
        for name, options in zip(names, made, strict=True)
    ]
    assert run_command(["judge", str(runs[0]), "--judge", "baseline/rules"]) == 0
    groups = group_entries(load_entries(runs))
    judged = score_judgements([entry for group in groups for entry in group.entries])
    page = bench.parent / "report.html"
    audited = [audit_group(group, trains=False) for group in groups]
    page.write_text(report_page(groups, audited, judged), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def browser(report_file: Path) -> Iterator[Any]:
    # The page is made first: a run is written on an event loop, and the browser's driver has one running.
    assert report_file.exists()
    with open_chromium() as opened:
        yield opened


class Watched:
    """A tab, with everything it asked for, said and tried."""

    def __init__(self, browser: Any, page: Path, width: int = 1280) -> None:
        self.tab = browser.new_page(viewport={"width": width, "height": 900})
        self.asked: list[str] = []
        self.said: list[str] = []
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", self._dismiss)
        self.tab.goto(page.as_uri())

    def _dismiss(self, dialog: Any) -> None:
        self.said.append(f"dialog {dialog.message}")
        dialog.dismiss()

    @property
    def ran(self) -> bool:
        """Whether anything was run."""
        return bool(self.tab.evaluate("window.__xss !== undefined")) or any("dialog" in line for line in self.said)

    @property
    def left(self) -> list[str]:
        """What was asked for beyond the page itself."""
        return [url for url in self.asked if not url.startswith(("data:", "file:"))]


@pytest.fixture(scope="module")
def opened(browser: Any, report_file: Path) -> Iterator[Watched]:
    watched = Watched(browser, report_file)
    watched.tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    yield watched
    watched.tab.close()


def test_there_are_five_hundred_payloads():
    assert len(set(PAYLOADS)) == 500


def test_the_watch_sees_what_an_unescaped_page_does(browser: Any, tmp_path: Path):
    page = tmp_path / "raw.html"
    page.write_text("<!doctype html><title>x</title>" + SHAPES[0].replace("{}", ACTS[0]) + LISTED[3], encoding="utf-8")
    watched = Watched(browser, page)
    assert watched.ran and watched.left
    watched.tab.close()


def test_every_payload_is_there_as_text(opened: Watched):
    shown = opened.tab.evaluate("document.body.textContent")
    assert [payload for payload in PAYLOADS if shown.count(clean(payload)) < 5] == []


def test_nothing_runs(opened: Watched):
    for place in range(0, 900, 90):
        opened.tab.mouse.move(place, place)
    opened.tab.keyboard.press("Tab")
    opened.tab.wait_for_timeout(300)
    assert not opened.ran
    assert opened.said == []
    assert opened.tab.title() == f"Diagnostic reasoning report: {HOSTILE_NAME}"


def test_nothing_leaves(opened: Watched, report_file: Path):
    assert opened.left == []
    assert [url for url in opened.asked if url.startswith("file:")] == [report_file.as_uri()]


def test_the_page_has_no_way_to_run_or_load_anything(opened: Watched):
    assert opened.tab.evaluate("document.scripts.length") == 0
    found = opened.tab.evaluate(
        """() => {
          const all = [...document.querySelectorAll('*')];
          const handlers = all.filter(one => [...one.attributes].some(a => a.name.toLowerCase().startsWith('on')));
          const strange = document.querySelectorAll(
            'iframe, object, embed, form, input, link, base, video, audio, meta[http-equiv=refresh], template');
          const links = all.flatMap(one => ['href', 'src', 'srcset', 'xlink:href', 'action', 'poster', 'ping']
            .map(name => one.getAttribute(name)).filter(value => value !== null));
          return [handlers.length, strange.length, links];
        }"""
    )
    handlers, strange, links = found
    assert (handlers, strange) == (0, 0)
    assert links and all(link.startswith(("#", "data:image/jpeg;base64,")) for link in links)


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_runs_over_the_side(opened: Watched, width: int):
    opened.tab.set_viewport_size({"width": width, "height": 900})
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.tab.evaluate("[...document.images].every(image => image.naturalWidth > 0)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(opened: Watched, scheme: str):
    opened.tab.emulate_media(color_scheme=scheme)
    contrast = opened.tab.evaluate(
        """() => {
          const light = colour => {
            const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map(part => part / 255)
              .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
          };
          const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          const of = (one, property) => light(getComputedStyle(one)[property]);
          const paper = of(document.body, 'backgroundColor');
          const card = of(document.querySelector('.figure'), 'backgroundColor');
          return [
            ratio(of(document.body, 'color'), paper), ratio(of(document.querySelector('.soft'), 'color'), paper),
            ratio(of(document.querySelector('summary'), 'color'), paper),
            ...[...document.querySelectorAll('svg text')].map(text => ratio(of(text, 'fill'), card)),
          ];
        }"""
    )
    assert min(contrast) >= 4.5


def test_the_script_sorts_filters_and_opens_and_payloads_still_do_nothing(browser: Any, report_file: Path):
    groups = group_entries(
        load_entries([path for path in report_file.parent.iterdir() if (path / "run.json").is_file()])
    )
    page = report_file.with_name("interactive.html")
    audited = [audit_group(group, trains=False) for group in groups]
    page.write_text(report_page(groups, audited, [], interactive=True), encoding="utf-8")
    watched = Watched(browser, page)
    keys = "rows => rows.map(row => Number(row.cells[1].dataset.sort))"
    head = watched.tab.locator(".board th:nth-child(2) button").first
    for reverse in (True, False):
        head.click()
        body = watched.tab.locator(".board tbody").first
        found = body.locator("tr").evaluate_all(keys)
        assert len(found) > 1 and found == sorted(found, reverse=reverse)
    # Names begin with the first, numbers with the highest.
    watched.tab.locator(".board th:nth-child(1) button").first.click()
    names = body.locator("tr").evaluate_all("rows => rows.map(row => row.cells[0].textContent.trim())")
    by_name = "names => [...names].sort((a, b) => a.localeCompare(b))"
    assert names == watched.tab.evaluate(by_name, names)
    case = watched.tab.locator("details.case").first.get_attribute("id")
    watched.tab.evaluate("id => { location.hash = id }", case)
    watched.tab.wait_for_function("id => document.getElementById(id).open", arg=case)
    assert not watched.ran and watched.left == [] and watched.said == []
    watched.tab.close()
