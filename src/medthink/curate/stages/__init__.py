"""One module per stage."""
