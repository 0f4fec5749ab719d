"""A viewer over made runs, asked as a browser on this machine would."""

from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from made_runs import make_run
from medthink.web.app.images import Renditions
from medthink.web.app.security import loopback_hosts
from medthink.web.runs.viewer import Viewer, view_application
from small_benchmark import write_benchmark

PORT = 7350


def make_runs(root: Path, cases: int = 12) -> Path:
    """A benchmark, and three runs over it: one that reads the images, one that does not, one of another model."""
    bench = write_benchmark(root / "bench", cases=cases)
    make_run(root / "runs/seeing", bench, skill=0.6, silent=2, task="twi")
    make_run(root / "runs/blind", bench, skill=0.3, task="twi", image_share=0.0)
    make_run(root / "runs/other", bench, skill=0.5, model="server/other-13b")
    return root / "runs"


def open_viewer(runs: Path, cache: Path, data: Path | None = None) -> tuple[Viewer, TestClient[Any]]:
    """The viewer of a folder, and a client that asks it."""
    viewer = Viewer([runs], data)
    app = view_application(viewer, hosts=sorted(loopback_hosts(PORT)), renditions=Renditions(cache))
    return viewer, TestClient(app, base_url=f"http://127.0.0.1:{PORT}")


def slug(viewer: Viewer, name: str) -> str:
    """The name in addresses of the run with this name."""
    return next(run.slug for run in viewer.shelf.runs() if run.name == name)
