"""A machine of a Ray cluster dies: the command says so in words. No cluster is started; Ray's part raises."""

from types import SimpleNamespace

import pytest

from medthink.bridges import ray_cluster
from medthink.cli.command import run_command
from small_benchmark import write_benchmark


class RayError(Exception):
    """As in ray.exceptions: what all of its errors are."""


class RayTaskError(RayError):
    """An error that the task itself raised."""


class NodeDiedError(RayError):
    """A machine of the cluster died."""


class DyingCluster:
    """The calls of Ray that are used, on a cluster whose machine dies in one of them."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, NodeDiedError=NodeDiedError)

    def __init__(self, dies_in, message):
        self._dies_in, self._message, self._count = dies_in, message, 0

    def cluster_resources(self):
        return {"CPU": 1.0}

    def put(self, thing):
        return thing

    def remote(self, **_):
        return lambda _: SimpleNamespace(remote=self._start)

    def _start(self, *_):
        self._count += 1
        return self._count

    def wait(self, tasks, **_):
        self._die("wait")
        return tasks[:1], tasks[1:]

    def get(self, _):
        self._die("get")

    def _die(self, where):
        if self._dies_in == where:
            raise NodeDiedError(self._message)


RUN = ["run", "bench", "--model", "baseline/random", "--out", "r", "--shards", "2", "--cluster", "ray"]
CHECK = ["data", "check", "bench", "--images", "--cluster", "ray"]


@pytest.mark.parametrize(("words", "dies_in"), [(RUN, "wait"), (RUN, "get"), (CHECK, "get")])
@pytest.mark.parametrize(
    ("message", "said"), [("node 10.0.0.7 died\nmore", "node 10.0.0.7 died"), ("", "NodeDiedError")]
)
def test_a_machine_that_died_ends_in_words_with_exit_code_3(
    tmp_path, monkeypatch, capsys, words, dies_in, message, said
):
    monkeypatch.chdir(tmp_path)
    write_benchmark(tmp_path / "bench", cases=4, images=1)
    monkeypatch.setattr(ray_cluster, "connect_to_ray", lambda: DyingCluster(dies_in, message))
    assert run_command(words) == 3
    told = capsys.readouterr().err
    assert said in told and "more" not in told and "Traceback" not in told
    assert "ray status" in told and "run the same command again" in told
