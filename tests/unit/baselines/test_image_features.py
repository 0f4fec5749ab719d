"""Picture features: computed once per image, whatever the session, and the same when they come from disk."""

import numpy as np
import pytest

from medthink.baselines import image_features as features
from medthink.cases.benchmark import Benchmark
from medthink.core.files import cache_folder
from small_benchmark import write_benchmark


@pytest.fixture
def questions(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    benchmark = Benchmark.open(write_benchmark(tmp_path / "bench", cases=6)).split("train")
    return [case.question for case in benchmark]


def test_the_second_time_no_picture_is_decoded(questions, monkeypatch):
    first = features.case_image_features(questions)
    monkeypatch.setattr(features, "picture_features", lambda _: pytest.fail("a picture was decoded again"))
    for one, other in zip(first, features.case_image_features(questions), strict=True):
        np.testing.assert_array_equal(one, other)
    image = questions[0].images[0]
    np.testing.assert_array_equal(features.image_features(image), features.readable_image_features([image])[0])


def test_an_image_that_changed_is_looked_at_again_and_one_that_is_gone_has_no_features(questions, tmp_path):
    first, second = (question.images[0] for question in questions[:2])
    before = features.image_features(first)
    (tmp_path / "bench" / first.path).write_bytes(second.read())
    assert not np.array_equal(features.image_features(first), before)
    (tmp_path / "bench" / second.path).write_bytes(b"no picture")
    (tmp_path / "bench" / questions[2].images[0].path).unlink()
    assert features.readable_image_features([second, questions[2].images[0]]) == [None, None]


def test_features_are_kept_in_one_file(questions):
    features.case_image_features(questions)
    (kept,) = (cache_folder() / "images").glob("features-*.sqlite")
    assert kept.stat().st_size > 0
