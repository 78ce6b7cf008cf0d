"""``python -m pinchpoint``."""

from pinchpoint.cli import main

main()
