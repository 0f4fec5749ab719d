"""Several runs of one benchmark are loaded together."""

from medthink.cases.benchmark import Benchmark
from medthink.scoring.material import load_run, load_runs


def test_runs_on_the_same_cases_are_loaded_from_one_reading(make_run, some_cases, monkeypatch):
    runs = [make_run("a"), make_run("b"), make_run("fewer", selection=some_cases)]
    opened = []
    original = Benchmark.open
    monkeypatch.setattr(Benchmark, "open", lambda path: opened.append(path) or original(path))
    loaded = load_runs(runs)
    assert len(opened) == 2
    assert loaded[0].cases is loaded[1].cases
    assert len(loaded[2].cases) < len(loaded[0].cases)
    for together, alone in zip(loaded, map(load_run, runs), strict=True):
        assert together.cases.keys() == alone.cases.keys()
        assert together._replace(cases={}) == alone._replace(cases={})
