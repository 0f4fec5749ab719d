"""Studies in the reading room: who reads what, what they marked and when, and the results.

`plan` says how a study is set up, `sittings` what a reader reads in one go, `tables` how it is stored. `setup` makes a
study, `desk` is where its readers work, `adjudication` settles their differences, `results` is for the coordinator.
"""
