"""Studies in the reading room: assignments, marks with their times, and results.

`plan` has the settings of a study, `sittings` the cases that a reader reads in one go. `setup` makes a study, `reading`
and `marks` are for its readers, `adjudication` resolves their differences, `results` is for the coordinator.
"""
