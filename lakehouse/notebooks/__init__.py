"""HTML pages for the cells of the notebooks in dashboards/, including errors."""
