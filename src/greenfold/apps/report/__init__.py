"""A report about a fit as one HTML page: comparison, figures, certificate, parameters.

`compare` needs only greenfold; `write_report` needs matplotlib and jinja2 (``pip install
greenfold[report]``).
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
