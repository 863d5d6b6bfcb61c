"""Secure sums (DCA Algorithm 1): the nodes that hold shares, and what they sign."""
