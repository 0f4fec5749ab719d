"""Counted words projected to a few directions."""

from typing import Any

import numpy as np


def fit_topics(counted: Any, most: int) -> tuple[Any, Any]:
    """A truncated SVD of the counts with at most so many directions, and where it puts each text."""
    from sklearn.decomposition import TruncatedSVD

    model = TruncatedSVD(max(1, min(most, min(counted.shape) - 1)), random_state=0)
    # Texts that are all alike have no variance; the ratio that is then undefined is of no use here.
    with np.errstate(invalid="ignore"):
        return model, model.fit_transform(counted)
