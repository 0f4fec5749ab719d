"""The forms that other people's tools read and write."""
