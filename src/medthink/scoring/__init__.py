"""A run's predictions against the references: scores, slices, comparisons; offline, and the same bytes every time."""
