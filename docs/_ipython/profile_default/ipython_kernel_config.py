"""What the kernels that run the pages are told: figures as SVG, no history."""

c = get_config()  # noqa: F821
c.InlineBackend.figure_formats = {"svg"}
c.HistoryManager.enabled = False
