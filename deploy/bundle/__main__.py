"""``python -m deploy.bundle``: the tarball, and the Debian package where it is asked for."""

from __future__ import annotations

import platform
import sys
import tempfile
from pathlib import Path

import click

from deploy.bundle import archive, debian, tree
from deploy.errors import DeployError


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("dist"), show_default=True)
@click.option("--python", default=sys.executable, help="The Python to carry along.")
@click.option("--deb/--no-deb", default=False, help="Make the Debian package, too.")
def main(out: Path, python: str, *, deb: bool) -> None:
    """Make what a broker host installs without a network."""
    try:
        for file in make(out, python, deb=deb):
            click.echo(f"{file} ({file.stat().st_size >> 20} MiB)")
    except DeployError as error:
        click.echo(f"bundle: {error}", err=True)
        sys.exit(1)


def make(out: Path, python: str, *, deb: bool) -> list[Path]:
    """Write the tarball, and the package if it is wanted, into ``out``.

    Raises:
        DeployError: One of them cannot be made.
    """
    out.mkdir(parents=True, exist_ok=True)
    when = archive.commit_time()
    with tempfile.TemporaryDirectory(prefix=".bundle.", dir=out) as name:
        work = Path(name)
        grown = tree.grow(work / "jmxlake", python, work)
        named = grown.path.rename(work / f"jmxlake-{grown.version}")
        machine = f"{sys.platform}-{platform.machine()}"
        tarball = out / f"{named.name}-{machine}.tar.gz"
        archive.pack(named, tarball, when)
        if not deb:
            return [tarball]
        moved = tree.Tree(named, grown.version, grown.python, grown.glibc)
        return [tarball, debian.build(moved, out, work / "stage", when)]


if __name__ == "__main__":
    main()
