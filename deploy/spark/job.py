"""Main file for spark-submit, which runs files and no entry points: ``jmxlake-job``.

Its name and folder must not hide a module, since Python puts the folder first on its path.
"""

from lakehouse.cli.main import job

job()
