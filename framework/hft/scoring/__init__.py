"""Queue models against what really happened to real orders."""
