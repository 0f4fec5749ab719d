"""What the documentation site (`make site`) makes of the pages: the README first, and its list as the contents.

The list under "Documentation" in the README is the one list of pages; `mkdocs.yml` names none.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Pages outside docs/, by their names on the site.
_ABOVE = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_CARDS = "metrics/index.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the contents from the README."""
    config.nav = contents((ROOT / "README.md").read_text(encoding="utf-8"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages above docs/ and the list of metric cards."""
    for name, place in _ABOVE.items():
        text = rewrite_links((ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, _CARDS, content=_list_of_cards()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Link the pages above docs/ by their names on the site, and name a source file by its path: the site has none."""
    for name, place in _ABOVE.items():
        markdown = markdown.replace(f"](../{name}", f"]({place}")
    return re.sub(r"\[([^\]]+)\]\(\.\./(src/[^)\s]+)\)", r"\1 (`\2`)", markdown)


def contents(readme: str) -> list[Any]:
    """The sections of the site and their pages, as the README lists them."""
    listed = readme.partition("## Documentation")[2]
    sections: list[Any] = [{"MedThink": "index.md"}]
    for line in re.findall(r"^- (.+(?:\n  .+)*)", listed, re.MULTILINE):
        name, _, links = line.partition(":")
        pages = [{title[0].upper() + title[1:]: _on_site(target)} for title, target in _LINK.findall(links)]
        sections.append({name: [_with_cards(page) for page in pages]})
    return sections


def rewrite_links(text: str) -> str:
    """The text with links that hold on the site."""
    return _LINK.sub(lambda link: f"[{link[1]}]({_on_site(link[2])})", text)


def _on_site(target: str) -> str:
    place = target.removeprefix("docs/")
    return _CARDS if place == "metrics/" else _ABOVE.get(place, place)


def _with_cards(page: dict[str, str]) -> dict[str, Any]:
    ((title, place),) = page.items()
    return {title: [_CARDS, *(f"metrics/{card.name}" for card in _cards())]} if place == _CARDS else page


def _list_of_cards() -> str:
    lines = [f"- [{_heading(card)}]({card.name})" for card in _cards()]
    return "\n".join(["# Metrics", "", "One card a metric: what it says, its range, its limits.", "", *lines, ""])


def _heading(card: Path) -> str:
    return card.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(":")[0]


def _cards() -> list[Path]:
    return sorted((ROOT / "docs/metrics").glob("*.md"))
