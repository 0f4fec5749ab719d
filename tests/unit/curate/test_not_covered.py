"""A stage that asked nobody but its own rules never says that all is covered."""

import pytest

from medthink.curate.settings import ModelSettings


@pytest.mark.parametrize(("model", "expected"), [("", False), ("baseline/rules", False), ("server/m", True)])
def test_the_embedded_rules_are_no_model(model, expected):
    assert ModelSettings(model=model).has_model is expected
