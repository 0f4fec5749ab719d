"""A further text of a submitter, added as a contributor would, is stored, asked for, exported, found and shown."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import medthink
from medthink.board.submissions import ModelDescription
from medthink.web.submissions.rest import SubmissionInfo

PROGRAM = Path(__file__).parents[1] / "support" / "further_text.py"
# In every file that has to be touched: what is written before which line.
ADDED = {
    ModelDescription: {
        '    notes: str = ""\n': '    region: str = ""\n',
        '    AskedText(name="link"': '    AskedText(name="region", title="Region", fact="Region"),\n',
    },
    SubmissionInfo: {
        '        link: Short = "",\n': '        region: Short = "",\n',
        '"link": link}': '"region": region, ',
    },
}


def test_a_further_text_of_a_submitter_touches_two_files(tmp_path: Path) -> None:
    package = Path(medthink.__file__).parent
    copy = tmp_path / "src" / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for known, lines in ADDED.items():
        home = Path(str(sys.modules[known.__module__].__file__))
        text = home.read_text(encoding="utf-8")
        for before, added in lines.items():
            assert text.count(before) == 1, before
            text = text.replace(before, added + before)
        (copy / home.relative_to(package)).write_text(text, encoding="utf-8")
    found = os.pathsep.join(map(str, [copy.parent, PROGRAM.parent]))
    command = [sys.executable, str(PROGRAM), str(tmp_path)]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": found}, check=True, timeout=120)
