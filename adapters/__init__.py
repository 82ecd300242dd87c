"""Venues and file formats, one file or folder each, imported as `hft.adapters.<name>`."""
