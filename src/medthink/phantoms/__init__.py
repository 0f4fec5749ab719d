"""The phantom benchmark: drawn images whose signs, taken together, decide between five options."""
