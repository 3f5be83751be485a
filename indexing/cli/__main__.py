"""``python -m indexing.cli``: the command ``hlo-indexing``."""

from indexing.cli import main

main()
