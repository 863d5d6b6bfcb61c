"""What the people set who run a collector: keys, invitations, posteriors, retention."""
