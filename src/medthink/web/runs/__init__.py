"""Pages of runs, for `medthink view`."""
