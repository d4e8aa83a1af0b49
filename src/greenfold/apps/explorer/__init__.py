"""A page on which you turn the input projection by hand: one HTML file that works offline.

`make_explorer` makes the page from a network and series of two or more classes. It needs
jinja2 (``pip install greenfold[report]``).
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
