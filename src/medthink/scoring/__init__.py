"""A run's predictions against the references: scores, slices, comparisons; offline and reproducible to the byte."""
