"""Planning a study: how wide its posteriors will be, by simulation through the same likelihood."""
