"""Tables of people, a row for each: files in several formats, and the codebook that explains cells."""

# How files write yes and no, in lower case.
YES_OR_NO = {
    **dict.fromkeys(("yes", "true", "1", "1.0", "checked"), True),
    **dict.fromkeys(("no", "false", "0", "0.0", "unchecked"), False),
}
