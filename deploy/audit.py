"""Known vulnerabilities of locked requirements: ``python -m deploy.audit``.

pip-audit exits with 0 where the advisory service does not know a package, and with 1 both for a
vulnerability and for a service that is not reachable. This command tells these apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from deploy import tools
from deploy.errors import DeployError

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[1]
_CLEAN, _VULNERABLE, _UNKNOWN = 0, 1, 3
_STATES: Final = {_CLEAN: "clean", _VULNERABLE: "vulnerable", _UNKNOWN: "unknown"}
_SECONDS: Final = 900
_SHOWN: Final = 200


class Audit(NamedTuple):
    """The result of an audit.

    Attributes:
        lock: The audited file.
        packages: Number of its packages that were looked up.
        unknown: Number of packages without an answer.
        vulnerabilities: Each as ``PACKAGE VERSION ID``.
        why: Reason for packages without an answer; empty: there are none.
    """

    lock: str
    packages: int
    unknown: int
    vulnerabilities: list[str]
    why: str = ""

    @property
    def code(self) -> int:
        """The exit code; what is unknown is not clean."""
        if self.vulnerabilities:
            return _VULNERABLE
        return _UNKNOWN if self.why or self.unknown or not self.packages else _CLEAN


@click.command()
@click.argument(
    "locks", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
@click.option(
    "--service", type=click.Choice(["pypi", "osv"]), default="pypi", show_default=True,
    help="Advisory service.",
)  # fmt: skip
@click.option(
    "--tool", type=click.Path(path_type=Path), help="pip-audit. Default: deploy/audit.lock."
)
def main(locks: Sequence[Path], service: str, tool: Path | None, *, as_json: bool) -> None:
    """Look up known vulnerabilities of each package in LOCKS (default: requirements.lock).

    Exits with 0 if every package was looked up and none has a known vulnerability, with 1 if one
    has, with 3 if the advisory service or the package index is not reachable, or does not know a
    package: then nothing is certain. make turns 1 and 3 into its own code 2.
    """
    try:
        program = tool or tools.program("pip-audit", tools.AUDIT)
        why = ""
    except DeployError as error:
        program, why = None, str(error)
    found = [
        audited(program, lock, service) if program else Audit(lock.name, 0, 0, [], why)
        for lock in locks or [ROOT / "requirements.lock"]
    ]
    code = max((one.code for one in found), key=(_CLEAN, _UNKNOWN, _VULNERABLE).index)
    click.echo(json.dumps(as_line(found, code)) if as_json else "\n".join(map(as_text, found)))
    sys.exit(code)


def audited(program: Path, lock: Path, service: str) -> Audit:
    """Run pip-audit on a file of pinned versions with hashes; nothing is installed."""
    command = [
        *(str(program), "--requirement", str(lock), "--disable-pip", "--require-hashes"),
        *("--format", "json", "--progress-spinner", "off", "--vulnerability-service", service),
    ]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        packages = json.loads(ran.stdout)["dependencies"]
    except (OSError, subprocess.TimeoutExpired) as error:
        return Audit(lock.name, 0, 0, [], f"pip-audit did not run: {type(error).__name__}")
    except (ValueError, KeyError, TypeError):
        last = (ran.stderr.strip() or "no output").splitlines()[-1]
        return Audit(lock.name, 0, 0, [], f"the service {service} gave no answer: {last[:_SHOWN]}")
    return _of(lock.name, packages)


def _of(lock: str, packages: Sequence[dict[str, Any]]) -> Audit:
    skipped = [one["skip_reason"] for one in packages if "skip_reason" in one]
    known = [
        f"{one['name']} {one['version']} {vulnerability['id']}"
        for one in packages
        for vulnerability in one.get("vulns", ())
    ]
    why = skipped[0][:_SHOWN] if skipped else ""
    return Audit(lock, len(packages) - len(skipped), len(skipped), sorted(set(known)), why)


def as_line(found: Sequence[Audit], code: int) -> dict[str, Any]:
    """Return the fields of the JSON line."""
    return {
        "audit": _STATES[code],
        "packages": sum(one.packages for one in found),
        "unknown": sum(one.unknown for one in found),
        "vulnerabilities": sorted({name for one in found for name in one.vulnerabilities}),
        "why": next((one.why for one in found if one.why), None),
    }


def as_text(audit: Audit) -> str:
    """Return the result of a file as lines."""
    lines = [
        f"{audit.lock}: {name}: upgrade it, then run make lock" for name in audit.vulnerabilities
    ]
    if audit.why or audit.code == _UNKNOWN:
        without = f"{audit.unknown} packages without an answer" if audit.unknown else "not audited"
        lines.append(f"{audit.lock}: {without}: {audit.why or 'it has no packages'}")
    if not lines:
        lines.append(f"{audit.lock}: no known vulnerability in {audit.packages} packages")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
