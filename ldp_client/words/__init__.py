"""All sentences that a participant reads, on a page, in a command or in an error, by their keys.

What is wrong with a document (StudyError, ReportError) is for whoever wrote it and stands where it is found.
"""
