"""The path of a report from a request to the disk: checked, packed, written in a group, once."""
