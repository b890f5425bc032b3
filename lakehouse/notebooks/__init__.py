"""The cells of the notebooks in dashboards/: each is a page of HTML, an error too."""

from lakehouse.notebooks.cells import Notebook as Notebook
