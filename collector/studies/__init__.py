"""Publishing studies, and the requirements of a published version for its reports."""
