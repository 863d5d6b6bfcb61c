"""DDPLR's experiments (Alparslan, Yıldırım, Birbil), with its constants and with right ones."""
