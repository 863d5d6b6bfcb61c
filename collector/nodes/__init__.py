"""Secure sums (DCA Algorithm 1): the nodes that hold shares, and the aggregator that closes a study."""
