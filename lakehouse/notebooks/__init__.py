"""The cells of the notebooks in dashboards/: each is a page of HTML, an error too."""
