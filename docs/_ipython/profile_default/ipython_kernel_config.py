"""What the kernels that run the pages are told: figures as SVG, no history."""

from ipykernel.iostream import OutStream

c = get_config()  # noqa: F821
c.InlineBackend.figure_formats = {"svg"}
c.HistoryManager.enabled = False

# Send what a cell prints in one piece, when it ends. MyST-NB would show an empty line where
# a text and the end of its line come apart.
OutStream.flush_interval = 60.0
