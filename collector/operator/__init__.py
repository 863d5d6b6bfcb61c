"""What operators control: keys, tickets and retention."""
