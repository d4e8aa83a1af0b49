"""Run the command line as ``python -m greenfold``."""

from .cli import main

if __name__ == "__main__":
    main()
