"""The issuer of blind tickets: an application of its own, which never sees a report."""
