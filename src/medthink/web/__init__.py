"""Pages in a browser: runs and cases to look at, locally and read-only.

Data comes as plain structs from `pages`, is shown by the templates, and goes out through routes or into static files.
"""
