"""Batches of like length, and features that are kept."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from medthink.metrics.radcliq.bertscore import FeatureStore
from medthink.metrics.radcliq.composite import batches_by_length, token_budget


@given(st.lists(st.integers(1, 512), max_size=60), st.integers(512, 4096))
def test_every_text_is_in_one_batch_and_no_batch_is_over_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[place] for place in batch) <= budget for batch in batches)
    walked = [lengths[place] for batch in batches for place in batch]
    assert walked == sorted(walked)


def test_the_budget_is_bounded() -> None:
    assert 1_024 <= token_budget() <= 8_192


def test_features_are_kept_by_text_and_weights(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path / "new", "semb", {"weights": "a"})
    assert store.read(["x"]) == {}
    store.keep({"x": b"1", "y\ud800": b"2"})
    store.keep({"x": b"3"})
    assert store.read(["x", "y\ud800", "z"]) == {"x": b"3", "y\ud800": b"2"}
    assert FeatureStore(tmp_path / "new", "semb", {"weights": "b"}).read(["x"]) == {}
    many = {str(number): b"" for number in range(1200)}
    store.keep(many)
    assert store.read(many) == many


def test_a_full_store_takes_no_more_and_is_still_read(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path, "bertscore", {}, most_bytes=1)
    store.keep({"x": b"1"})
    store.keep({"y": b"2"})
    assert store.read(["x", "y"]) == {"x": b"1"}


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    store = FeatureStore(None, "semb", {})
    store.keep({"x": b"1"})
    assert store.read(["x"]) == {} and not list(tmp_path.iterdir())
