"""Installation files for hosts without a network: a tarball, a .deb and a .rpm.

All contain one tree: an interpreter, its libraries, and jmxlake with the extras that its systemd
units need. The tree runs from any folder.
"""
