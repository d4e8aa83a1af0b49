"""`python -m greenfold` is the command line."""

from .cli.entry import main

if __name__ == "__main__":
    main()
