"""Drawing: pictures of answers, as SVG text or with matplotlib.

In come answers; out come pictures.  Read `drawing` first.

`figures` is plain data: grids of cells, links, bars, rooflines.  `svg_text` and `matplotlib_axes`
draw it; the other modules make it from regions, tilings, layouts, accesses, plans and traffic.
Imports the analyses, from `maps` to `frontends`; contains no analysis.  Every drawn cell has its
index and its value, so a picture can be compared with the answer that it shows.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
