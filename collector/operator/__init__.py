"""What operators set: keys, invitations, running posteriors, retention."""
