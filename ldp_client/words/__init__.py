"""What people read of a study: sentences, numbers, plurals."""
