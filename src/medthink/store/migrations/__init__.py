"""Numbered changes of the store's tables, applied in order when a store is opened."""
