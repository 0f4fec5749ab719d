"""The exam of judges: expert sentences with known edits and harmless twins, and how a judge labels them."""
