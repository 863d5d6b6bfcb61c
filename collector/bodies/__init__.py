"""Request bodies, read within limits: inflated, parsed from JSON or CBOR."""
