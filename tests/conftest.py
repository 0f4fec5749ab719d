"""What holds for every test."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Where the system has memory for temporary files they go there: many tests would do nothing but wait for a disk.
MEMORY, ENOUGH_BYTES = Path("/dev/shm"), 4 * 1024**3
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# The workers use every core already: threads of numpy and torch on top of them only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["children", "cpu_times", "random_order", "remedies", "stores"]

# How long an example takes says something about the machine, not about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

HERE = Path(__file__).parent
# What `--quick` leaves out: files that take seconds, the other kind of store, and what is dear to make. The rest of
# every room stays, so that no room is changed unseen.
LEFT_OUT = (
    "unit/api/test_python_door.py",
    "unit/audit/test_contamination.py",
    "unit/baselines/test_baseline_rules.py",
    "unit/baselines/test_guessing.py",
    "unit/board/test_board_rows.py",
    "unit/board/test_ranking.py",
    "unit/board/test_submissions.py",
    "unit/bridges/test_cluster.py",
    "unit/bridges/test_inspect_logs.py",
    "unit/cases/test_check_defects.py",
    "unit/cases/test_export.py",
    "unit/cases/test_pull.py",
    "unit/cases/test_statistics.py",
    "unit/cli/test_demo.py",
    "unit/cli/test_door.py",
    "unit/cli/test_serve.py",
    "unit/cli/test_view.py",
    "unit/curate/test_icd.py",
    "unit/curate/test_release.py",
    "unit/judge/test_judge_commands.py",
    "unit/judge/test_judge_exam.py",
    "unit/judge/test_judge_injection.py",
    "unit/judge/test_judge_new_kind.py",
    "unit/judge/test_judge_preference.py",
    "unit/judge/test_judge_session.py",
    "unit/metrics/test_radcliq_models.py",
    "unit/models/test_inspect.py",
    "unit/models/test_local.py",
    "unit/phantoms/test_phantom_fairness.py",
    "unit/phantoms/test_phantom_images.py",
    "unit/phantoms/test_phantom_writer.py",
    "unit/readers/test_reading_lists.py",
    "unit/report/test_figures.py",
    "unit/report/test_first_screen.py",
    "unit/report/test_judged.py",
    "unit/report/test_page.py",
    "unit/runs/test_containment.py",
    "unit/runs/test_damaged_ledger.py",
    "unit/runs/test_session.py",
    "unit/scoring/test_comparing.py",
    "unit/scoring/test_partial.py",
    "unit/stats/test_ranks.py",
    "unit/stats/test_sequence.py",
    "unit/stats/test_stats_coverage.py",
    "unit/web/test_api.py",
    "unit/web/test_matrix.py",
    "unit/web/test_room.py",
    "unit/web/test_room_at_once.py",
    "unit/web/test_submissions.py",
    "unit/web/test_vouching.py",
)
DEAR = {"postgresql", "postgres", "clean", "leaky", "scored"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`."""
    parser.addoption("--quick", action="store_true", help="leave out the tests that take seconds")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a file is not even imported; None leaves that to pytest."""
    return True if config.getoption("--quick") and _is_below(collection_path, LEFT_OUT) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with what takes long: begun last, it would keep one worker busy while the others have nothing to do."""
    if config.getoption("--quick"):
        dear = [item for item in items if _is_dear(item)]
        config.hook.pytest_deselected(items=dear)
        items[:] = [item for item in items if item not in set(dear)]
    first = {path for path in {item.path for item in items} if _is_below(path, ("e2e", "faults", *LEFT_OUT))}
    items.sort(key=lambda item: item.path not in first)


def _is_dear(item: pytest.Item) -> bool:
    """Whether a test uses a fixture that is dear, by its name or by that of a parameter."""
    given = getattr(getattr(item, "callspec", None), "params", {}).values()
    return not DEAR.isdisjoint((*getattr(item, "fixturenames", ()), *(one for one in given if isinstance(one, str))))


def _is_below(path: Path, places: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(HERE / place) for place in places)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """The user's cache is neither read nor written; what one test trains, the others of its process find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        # One list of the machine's fonts for all processes: it takes matplotlib seconds to make.
        patch.setenv("MPLCONFIGDIR", str(tmp_path_factory.getbasetemp().parent / "matplotlib"))
        yield
