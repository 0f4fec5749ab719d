"""What holds for every test."""

pytest_plugins = ["children"]
