"""Bulk I/O for Python on a C core."""
