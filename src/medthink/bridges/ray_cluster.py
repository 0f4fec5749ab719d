"""Work on a running Ray cluster: the shards of a run, and any work in portions.

The machines of the cluster need this package and one file system: a task works in the folder that the command was
given in, so that every path has the same meaning there. Keys are not sent along; they must be in the environment that
Ray was started in.
"""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from medthink.core.errors import MedThinkError, OutsideError, UsageError
from medthink.runs.engine import interrupted_by_signals
from medthink.runs.ledger.lock import lock_run
from medthink.runs.shards import ShardEnd, begin_shards, shards_folder, share_pace, split_run, work_on_shard

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.manifest import RunSpec

Portion = TypeVar("Portion")
Made = TypeVar("Made")
# How often a task whose worker died is started again.
_RESTARTS = 2
# Enough that no worker waits for the next portion, few enough to stay small in memory.
_PORTIONS_A_CORE = 4
_LAST_WORD_S = 20.0


def map_on_ray(work: Callable[[Portion], Made], portions: Iterable[Portion]) -> Iterator[Made]:
    """The results for all portions, in order, computed by the cluster's workers."""
    ray = connect_to_ray()
    task = ray.remote(max_retries=_RESTARTS)(_do_in_folder)
    shared = ray.put(work)
    most = _PORTIONS_A_CORE * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: deque[Any] = deque()
    for portion in portions:
        waiting.append(task.remote(str(Path.cwd()), shared, portion))
        if len(waiting) >= most:
            yield _fetch(ray, waiting.popleft())
    while waiting:
        yield _fetch(ray, waiting.popleft())


def run_shards(spec: "RunSpec", transport: "Transport", count: int, tell: Callable[[ShardEnd], None]) -> list[ShardEnd]:
    """Make or continue the shards of a run as tasks of the cluster; `tell` is called for each that has ended."""
    assert spec.out is not None
    shared = share_pace(transport, count)
    ray = connect_to_ray()
    begun = begin_shards(spec.out, count)
    task = ray.remote(max_retries=_RESTARTS, num_gpus=_gpus(ray, spec.model))(_do_in_folder)
    with lock_run(shards_folder(spec.out)), interrupted_by_signals():
        work = ray.put(_WorkOnShard(shared, begun.token))
        tasks = {task.remote(str(Path.cwd()), work, one): one for one in split_run(spec, count)}
        try:
            return list(_ends(ray, tasks, tell))
        except KeyboardInterrupt:
            for one in tasks:
                ray.cancel(one)
            # Each writes and copies what it has.
            ray.wait(list(tasks), num_returns=len(tasks), timeout=_LAST_WORD_S)
            raise


class _WorkOnShard:
    """A worker's task: one shard."""

    def __init__(self, transport: "Transport", token: str) -> None:
        self._transport = transport
        self._token = token

    def __call__(self, spec: "RunSpec") -> ShardEnd:
        return work_on_shard(spec, self._transport, self._token)


def _ends(ray: Any, tasks: "dict[Any, RunSpec]", tell: Callable[[ShardEnd], None]) -> Iterator[ShardEnd]:
    """The end of each shard, as they end; if all of its workers died, it is an error of that shard."""
    left = list(tasks)
    while left:
        with _told_in_words(ray):
            (done,), left = ray.wait(left)
        shard = tasks[done].selection.shard
        assert shard is not None
        try:
            end: ShardEnd = _fetch(ray, done)
        except MedThinkError as error:
            end = ShardEnd(shard=shard, error=error)
        tell(end)
        yield end


def _gpus(ray: Any, model: str) -> int:
    """A model in the worker's own process gets a GPU if the cluster has any; Ray hides them from other tasks."""
    return int(model.startswith("local/") and ray.cluster_resources().get("GPU", 0) > 0)


def connect_to_ray() -> Any:
    """The `ray` package, connected to the cluster that runs; OutsideError if there is none."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise UsageError("Ray is not installed", remedy="pip install 'medthink[ray]'") from None
    if ray.is_initialized():
        return ray
    try:
        ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise OutsideError(
            f"no Ray cluster is running: {str(error).splitlines()[0]}",
            remedy="start one with `ray start --head`, or set RAY_ADDRESS; if it requires a token, "
            "set RAY_AUTH_MODE=token",
        ) from None
    return ray


def _do_in_folder(folder: str, work: Callable[[Portion], Made], portion: Portion) -> Made:
    """A task of the cluster: relative paths refer to the folder in which the command was given."""
    try:
        entered = chdir(folder)
        entered.__enter__()
    except OSError:
        raise OutsideError(
            f"{folder} is not on the worker {socket.gethostname()}",
            remedy="use a folder on a file system that all machines share",
        ) from None
    try:
        return work(portion)
    finally:
        entered.__exit__(None, None, None)


def _fetch(ray: Any, task: Any) -> Any:
    """The task's result, or its own error."""
    with _told_in_words(ray):
        return ray.get(task)


@contextmanager
def _told_in_words(ray: Any) -> Iterator[None]:
    """An error of a task is raised as its own, and one of the cluster, such as a machine that died, as OutsideError."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, MedThinkError):
            raise cause from None
        raise OutsideError(
            f"a worker failed: {cause!r}", remedy="install the same release of medthink on every machine"
        ) from None
    except ray.exceptions.RayError as error:
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise OutsideError(
            f"the Ray cluster gave up on a task after up to {_RESTARTS + 1} tries: {why}",
            remedy="check with `ray status` that all machines are up and have enough memory, then run the same command"
            " again",
        ) from None
