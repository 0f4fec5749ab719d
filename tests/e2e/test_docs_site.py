"""The documentation site builds without a warning: every link and every anchor leads somewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")

from build_site import contents, rewrite_links

ROOT = Path(__file__).resolve().parents[2]


def build(out: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "mkdocs", "build", "--config-file", config, "--site-dir", out]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_the_site_builds_with_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = build(tmp_path / "site")
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in ROOT.glob("docs/**/*.md")}
    made = {page.relative_to(tmp_path / "site") for page in tmp_path.glob("site/**/*.html")}
    assert pages < made and Path("index.html") in made
    text = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert 'src="http' not in text and "fonts.g" not in text


def test_a_link_or_an_anchor_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# One\n\n[gone](gone.md) [no such heading](#two)\n")
    lines = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").splitlines()
    (tmp_path / "mkdocs.yml").write_text("\n".join(line for line in lines if not line.startswith("hooks:")))
    done = build(tmp_path / "site", tmp_path / "mkdocs.yml")
    assert done.returncode == 1
    assert "gone.md" in done.stderr and "#two" in done.stderr


def test_the_contents_are_the_readmes_list() -> None:
    readme = "# T\n\n## Documentation\n\n- Start: [tutorial](docs/tutorial.md),\n  [log](CHANGELOG.md).\n"
    pages = [{"Tutorial": "tutorial.md"}, {"Log": "CHANGELOG.md"}]
    assert contents(readme) == [{"MedThink": "index.md"}, {"Start": pages}]
    assert rewrite_links("![p](docs/pictures/p.png) [a](docs/a.md#b)") == "![p](pictures/p.png) [a](a.md#b)"
