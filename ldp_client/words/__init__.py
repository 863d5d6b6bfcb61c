"""What people read of a study. A language is one file here, en.json: every sentence by its key."""
