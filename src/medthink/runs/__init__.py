"""A run: its manifest, its ledger of calls, the engine that fills it, and the predictions that come out."""
