"""What false reports could have done to a result, and whether reports look as their mechanism sends them."""
