"""`python -m medthink` is `medthink`."""

from medthink.cli import main

if __name__ == "__main__":
    main()
