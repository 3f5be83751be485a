# Public names, loaded on first use (`__init__.py`).
