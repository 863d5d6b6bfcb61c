"""What all tests share: programs, ports, errors by code, the guard."""
