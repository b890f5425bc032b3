"""Makes what a broker host installs without a network: a tarball and a Debian package.

Both hold one tree: an interpreter, its libraries, and jmxlake with the extras ``agent`` and
``maintain``. It runs from wherever it lies.
"""
