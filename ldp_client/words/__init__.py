"""All sentences that a participant reads, on a page, in a command or in an error, by their keys: en.json."""
