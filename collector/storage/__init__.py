"""The database: tables, migrations, every statement, backup and retention."""
