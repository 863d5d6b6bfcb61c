"""All sentences that a participant reads, on a page, in a command or in an error, by their keys.

Errors about a document (StudyError, ReportError) are for its author. Their texts are where they are raised.
"""
