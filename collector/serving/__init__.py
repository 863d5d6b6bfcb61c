"""The processes that listen: gunicorn or granian."""
