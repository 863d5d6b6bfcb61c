"""Publishing studies, and what a published version demands of its reports."""
