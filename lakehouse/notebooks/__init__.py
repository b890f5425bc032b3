"""What the notebooks in dashboards/ show: each cell is a page of HTML, whatever goes wrong."""

from lakehouse.notebooks.notebook import Notebook

__all__ = ["Notebook"]
