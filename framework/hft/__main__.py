"""`python -m hft`."""

from hft.cli.main import main

main()
