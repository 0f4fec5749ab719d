"""Five hundred hostile texts in every field that others can write on the board: nothing runs and nothing leaves.

Texts are packed into values as long as a field takes, a row of the board for each, so that few pages hold them all.
Lists are opened in the browser; of the pages about one row each, its own parser says what they would have become.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from chromium import open_chromium
from medthink.accounts.account import NewAccount, add_account
from medthink.accounts.invitations import invite
from medthink.accounts.sessions import begin_session, make_token
from medthink.board.checking import LoadedBenchmark, check_file
from medthink.board.moderation import annotate, flag, publish, withdraw
from medthink.board.queue import Upload, claim, keep_scores, receive
from medthink.board.submissions import ModelDescription, find_submission
from medthink.core.markup import clean
from medthink.web.app.access import COOKIE
from payloads import PAYLOADS
from people import Board
from small_benchmark import write_benchmark

pytestmark = pytest.mark.browser
CASES = 6
# Everything in a page that could run or load something, but for our own scripts, styles, images and links.
FIND = """(pages) => pages.flatMap(([path, text]) => {
  const found = [], page = new DOMParser().parseFromString(text, "text/html");
  for (const one of page.querySelectorAll("*")) {
    const own = (name) => /^(\\/(?!\\/)|[?#]|$|https:\\/\\/model\\.example\\/)/.test(one.getAttribute(name) ?? "");
    const kinds = "iframe,object,embed,base,style,video,audio,source,marquee,math,template,xss,animate,frame,noscript";
    if (one.matches(kinds)) found.push(one.outerHTML);
    if (one.matches("meta[http-equiv]")) found.push(one.outerHTML);
    for (const { name, value } of one.attributes) {
      if (name.startsWith("on") || ["style", "srcdoc", "srcset", "ping", "poster", "background"].includes(name))
        found.push(`${name}=${value}`);
    }
    if (one.matches("script") && (one.textContent || !own("src"))) found.push(one.outerHTML);
    for (const name of ["src", "href", "action", "formaction", "xlink:href", "data"])
      if (one.hasAttribute(name) && !own(name)) found.push(`${name}=${one.getAttribute(name)}`);
  }
  return found.map((what) => `${path}: ${what.slice(0, 120)}`);
})"""


def pack(texts: list[str], longest: int) -> list[str]:
    """The texts joined into as few values as hold at most so many letters each; longer texts stand alone, cut."""
    packed = [""]
    for text in texts:
        joined = f"{packed[-1]} {text}".strip()
        if len(joined) <= longest:
            packed[-1] = joined
        else:
            packed.append(text[:longest].strip())
    return packed


# What a field takes; the others are refused where they are sent, and named in problems (test_submit_browser.py).
TAKEN = [text for text in PAYLOADS if clean(text) == text and text.strip() == text and text.isprintable()]
VALUES = pack(TAKEN, 200)
NAMES = pack([text for text in TAKEN if len(text) <= 100], 100)


class Scene(NamedTuple):
    """A served board, every text in every field, and the tokens of its rows."""

    address: str
    board: Board
    tokens: list[str]
    boss: Any


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("payloads")
    bench = write_benchmark(root / "bench", cases=CASES)
    board = Board(root, bench)
    boss = board.add("boss", "maintainer", "submitter", team=VALUES[0])
    tokens = list(fill(board, LoadedBenchmark.open(bench), root))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("medthink.accounts.sessions._MOST_TOKENS", len(VALUES))
        for text in VALUES:
            make_token(board.store, boss, text, ["read"], days=3)
    for number, text in enumerate(NAMES):
        add_account(board.store, NewAccount(name=f"n{number}", shown_name=text, roles=("reader",)), actor=VALUES[1])
    for at, text in enumerate(VALUES):
        invite(board.store, ["reader"], actor=text, team=VALUES[at - 1], about=VALUES[at - 2])
    with board.serving() as address:
        yield Scene(address, board, tokens, boss)
    board.store.close()


def fill(board: Board, held: LoadedBenchmark, root: Any) -> Iterator[str]:
    """A published row for every value, another value in each of its fields."""
    benchmark, rows = board.served.benchmark.id, root / "rows.jsonl"
    rows.write_text("".join(f'{{"title": "{case.title}", "prediction": "A"}}\n' for case in held.cases.values()))
    made = check_file(rows, held).scores
    assert made is not None
    for at in range(len(VALUES)):
        model, team, organisation, family, effort, mode, link, words = (VALUES[at - shift] for shift in range(8))
        about = ModelDescription(
            organisation=organisation, family=family, effort=effort, mode=mode,
            link=f"https://model.example/{link}"[:200],
            notes=" ".join(VALUES[at : at + 9])[:2000],
        )  # fmt: skip
        upload = Upload(benchmark_id=benchmark, team=team, model=model, data=b"%d" % at, about=about, sent_by=words)
        token = receive(board.store, upload, actor=words).token
        claimed = claim(board.store, actor=words, only=find_submission(board.store, token).id)
        keep_scores(board.store, claimed, made, provenance="traced", detail=words)
        publish(board.store, token, actor=words)
        annotate(board.store, token, actor=words, words=words)
        flag(board.store, token, actor=words, why=VALUES[at - 8])
        yield token


class Watched:
    """A signed-in page and what it did that it should not."""

    def __init__(self, scene: Scene, browser: Any) -> None:
        self.address = scene.address
        self.context = browser.new_context()
        session = begin_session(scene.board.store, scene.boss)
        self.context.add_cookies([{"name": COOKIE, "value": session, "url": scene.address}])
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: str) -> str:
        """Open a page, and everything that folds on it."""
        self.page.goto(self.address + path)
        self.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        return str(self.page.inner_text("body"))

    def parse(self, paths: list[str]) -> list[str]:
        """What could run or load in the pages at these addresses, by the browser's own parser."""
        pages = [(path, self.context.request.get(self.address + path).text()) for path in paths]
        assert len(pages) == len(paths) and all("MedThink" in text for _, text in pages)
        found: list[str] = self.page.evaluate(FIND, pages)
        return found

    def harm(self) -> tuple[list[str], list[str], int]:
        """What was said to the console (violations of the policy too), what was asked of others, what ran."""
        elsewhere = [url for url in self.asked if not url.startswith((f"{self.address}/", "data:"))]
        return self.said, elsewhere, self.page.evaluate("window.__xss ?? 0")


@pytest.fixture(scope="module")
def watched(scene: Scene) -> Iterator[Watched]:
    with open_chromium() as browser:
        watching = Watched(scene, browser)
        yield watching
        watching.context.close()


NOTHING: tuple[list[str], list[str], int] = ([], [], 0)


def test_the_texts_are_all_there():
    assert len(PAYLOADS) == 500 and len(TAKEN) > 430
    assert all(any(text[:200] in value for value in VALUES) for text in TAKEN)


@pytest.mark.parametrize("path", ["/?proof=1&col=team&col=family&col=condition", "/compare?a=1&b=2", "/queue"])
def test_lists_show_every_text_and_run_none(scene: Scene, watched: Watched, path: str):
    shown = " ".join(watched.open(path).split())
    assert all(" ".join(value.split()) in shown for value in VALUES) or path.startswith("/compare")
    assert watched.harm() == NOTHING


@pytest.mark.parametrize("path", ["/people", "/account"])
def test_names_labels_and_notes_run_none(watched: Watched, path: str):
    watched.open(path)
    assert watched.harm() == NOTHING


def test_pages_about_one_row_hold_nothing_of_their_making(scene: Scene, watched: Watched):
    watched.open("/models/1")
    paths = [f"/models/{number}" for number in range(1, len(VALUES) + 1)]
    paths += [f"/submissions/{token}" for token in scene.tokens[::3]]
    assert watched.parse(paths) == []
    assert watched.harm() == NOTHING


def test_addresses_hold_nothing_of_their_making(watched: Watched):
    watched.open("/")
    # As long as the server takes them, so that few pages hold all; the leaderboard's own pages are the dear ones.
    asked = [quote(value) for value in pack([text for text in PAYLOADS if "\x00" not in text], 2000)]
    paths = [f"/?q={one}&sort={one}&proof={one}&col={one}&as_of={one}" for one in asked[::4]]
    paths += [f"/cases?q={one}&state={one}&modality={one}&model={one}&page={one}" for one in asked]
    paths += [f"/compare?a={one}&b={one}&only={one}" for one in asked[::4]]
    paths += [f"/sign-in?next={one}" for one in asked]
    assert watched.parse(paths) == []
    assert watched.harm() == NOTHING


def test_reasons_of_withdrawals_run_none(scene: Scene, watched: Watched):
    for at, token in enumerate(scene.tokens):
        withdraw(scene.board.store, token, actor=VALUES[at - 1], why=VALUES[at - 2])
    shown = " ".join(watched.open("/").split())
    assert all(" ".join(value.split()) in shown for value in VALUES)
    assert watched.parse([f"/models/{number}" for number in range(1, len(VALUES), 10)]) == []
    assert watched.harm() == NOTHING
