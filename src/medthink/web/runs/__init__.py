"""What each page shows, as plain structs: no HTML, no requests."""
