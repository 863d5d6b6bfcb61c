"""What operators control: keys, invitations and retention."""
