"""Makes the sources of the documentation site; Sphinx builds it (``make site``)."""
