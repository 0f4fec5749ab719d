"""The exam of judges: expert sentences with known edits and harmless twins, and what a judge makes of them."""
