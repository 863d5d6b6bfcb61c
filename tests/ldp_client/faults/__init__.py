"""A device that is killed, loses power or runs out of disk, again and again."""
