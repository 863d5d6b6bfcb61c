"""The HTTP routes: each view reads the request, calls one function and answers."""
