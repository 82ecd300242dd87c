"""The `hft` command: one file a command, no logic; commands are imported when they are called."""
