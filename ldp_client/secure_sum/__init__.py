"""A device's part in a secure sum (Heikkilä et al. 2017, Algorithm 1): secret shares, one for each node."""
