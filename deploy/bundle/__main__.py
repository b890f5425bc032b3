"""``python -m deploy.bundle``: a tarball, a .deb and a .rpm for each architecture."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from deploy.bundle import archive, packages, tree
from deploy.errors import DeployError


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("dist"), show_default=True)
@click.option(
    "--python", "homes", type=click.Path(path_type=Path), multiple=True, default=[sys.base_prefix],
    help="Folder of the Python to bundle; once for each architecture. Default: the running Python.",
)  # fmt: skip
def main(out: Path, homes: tuple[Path, ...]) -> None:
    """Make the installation files for hosts without a network."""
    try:
        for home in homes:
            for file in make(out, home):
                click.echo(f"{file} ({file.stat().st_size >> 20} MiB)")
    except DeployError as error:
        click.echo(f"bundle: {error}", err=True)
        sys.exit(1)


def make(out: Path, home: Path) -> list[Path]:
    """Write tarball, .deb and .rpm with the Python of ``home`` into ``out``.

    Raises:
        DeployError: A step fails.
    """
    out.mkdir(parents=True, exist_ok=True)
    when = archive.commit_time()
    with tempfile.TemporaryDirectory(prefix=".bundle.", dir=out) as name:
        work = Path(name)
        grown = tree.grow(work / "jmxlake", home, work)
        archive.settle(grown.path, when)
        folder = f"jmxlake-{grown.version}"
        tarball = out / f"{folder}-{sys.platform}-{grown.machine}.tar.gz"
        archive.pack(grown.path, tarball, when, folder)
        return [tarball, *packages.build(grown, out, when)]


if __name__ == "__main__":
    main()
