"""Reports on their way out, as streams of several forms, and fetched whole again."""
