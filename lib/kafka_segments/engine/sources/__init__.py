"""Sources listed and compared with the tables, as rows."""
