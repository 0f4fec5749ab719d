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
# What `--quick` leaves out: files that take seconds, or need torch, a server, a browser or processes of their own.
LEFT_OUT = (
    "unit/accounts",
    "unit/api/test_python_door.py",
    "unit/audit",
    "unit/baselines",
    "unit/board",
    "unit/bridges/test_cluster.py",
    "unit/bridges/test_harnesses.py",
    "unit/bridges/test_inspect_logs.py",
    "unit/bridges/test_inspect_tasks.py",
    "unit/cases/test_check_defects.py",
    "unit/cases/test_export.py",
    "unit/cases/test_pull.py",
    "unit/cases/test_statistics.py",
    "unit/cli/test_accounts.py",
    "unit/cli/test_crew.py",
    "unit/cli/test_demo.py",
    "unit/cli/test_door.py",
    "unit/cli/test_live.py",
    "unit/cli/test_serve.py",
    "unit/cli/test_sweep_plan.py",
    "unit/cli/test_view.py",
    "unit/curate/test_engine.py",
    "unit/curate/test_icd.py",
    "unit/curate/test_split.py",
    "unit/curate/test_textonly.py",
    "unit/judge/test_judge_commands.py",
    "unit/judge/test_judge_exam.py",
    "unit/judge/test_judge_injection.py",
    "unit/judge/test_judge_new_kind.py",
    "unit/judge/test_judge_omissions.py",
    "unit/judge/test_judge_preference.py",
    "unit/judge/test_judge_session.py",
    "unit/metrics/test_bleu.py",
    "unit/metrics/test_radcliq_models.py",
    "unit/models/test_inspect.py",
    "unit/models/test_local.py",
    "unit/phantoms",
    "unit/readers",
    "unit/report/test_entries.py",
    "unit/report/test_exports.py",
    "unit/report/test_figures.py",
    "unit/report/test_first_screen.py",
    "unit/report/test_judged.py",
    "unit/report/test_page.py",
    "unit/report/test_registered_metric.py",
    "unit/report/test_submissions_reported.py",
    "unit/report/test_words.py",
    "unit/report/test_wrong_cases.py",
    "unit/runs/test_containment.py",
    "unit/runs/test_damaged_ledger.py",
    "unit/runs/test_least_cost.py",
    "unit/runs/test_less_waiting.py",
    "unit/runs/test_progress.py",
    "unit/runs/test_run_commands.py",
    "unit/runs/test_session.py",
    "unit/runs/test_trace.py",
    "unit/runs/test_without_posix.py",
    "unit/scoring/test_comparing.py",
    "unit/scoring/test_loading_runs.py",
    "unit/scoring/test_partial.py",
    "unit/scoring/test_reward.py",
    "unit/scoring/test_scoring.py",
    "unit/scoring/test_sequential.py",
    "unit/stats/test_gain.py",
    "unit/stats/test_memory.py",
    "unit/stats/test_powered.py",
    "unit/stats/test_ranks.py",
    "unit/stats/test_sequence.py",
    "unit/stats/test_stats_coverage.py",
    "unit/stats/test_stats_docs.py",
    "unit/stats/test_stats_edges.py",
    "unit/web",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`."""
    parser.addoption("--quick", action="store_true", help="leave out the tests that take seconds")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a file is not even imported; None leaves that to pytest."""
    return True if config.getoption("--quick") and _is_below(collection_path, LEFT_OUT) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with what takes long: begun last, it would keep one worker busy while the others have nothing to do."""
    first = {path for path in {item.path for item in items} if _is_below(path, ("e2e", "faults", *LEFT_OUT))}
    items.sort(key=lambda item: item.path not in first)


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
