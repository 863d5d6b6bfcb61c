"""Options, output and progress that commands of all packages share."""
