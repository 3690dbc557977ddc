"""``python -m placement`` is the command line."""

from placement.cli import main

if __name__ == "__main__":
    main()
