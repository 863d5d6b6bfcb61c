"""What operators set: keys, invitations, retention."""
