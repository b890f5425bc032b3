"""Values of single settings of the agent, and its environment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.hostile.case import EITHER, REFUSED, SECRET, TAKEN, Case, Codes, Command
from tests.hostile.serving import configured, page, serving, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.case import Room

_CHECK: Final = ("jmxlake-agent", "check", "--config", "agent.yaml")
_SCRAPE: Final = ("jmxlake-agent", "scrape", "--config", "agent.yaml")
_URLS: Final = {
    "file": "file:///etc/hostname",
    "file of the room": "file://@ROOM@/outside/secret.txt",
    "ftp": "ftp://@CANARY@/x",
    "data": "data:text/plain,x",
    "no scheme": "@CANARY@/metrics",
    "impossible port": "http://127.0.0.1:999999/",
    "port of text": "http://127.0.0.1:x/",
    "port of zero": "http://127.0.0.1:0/",
    "negative port": "http://127.0.0.1:-1/",
    "newline": "http://127.0.0.1:1/\r\nX-Evil: 1",
    "password": f"http://u:{SECRET}@127.0.0.1:1/metrics",
    "password without a user": f"http://:{SECRET}@127.0.0.1:1/",
    "token": f"http://127.0.0.1:1/metrics?token={SECRET}",
    "fragment": f"http://127.0.0.1:1/#{SECRET}",
    "bad brackets": f"http://[::1/?k={SECRET}",
    "bad escape": f"http://127.0.0.1:1/%zz?k={SECRET}",
    "no host": "http:///metrics",
    "long": "http://127.0.0.1:1/" + "x" * 100_000,
    "NUL": "http://127.0.0.1:1/\x00",
    "unicode host": "http://ⓔxample.invalid/",
    "placeholder": "http://{host.__class__}:{port}/",
}
_KEYS: Final[dict[str, tuple[dict[str, Any], Codes]]] = {
    "window of a year": ({"window": "10000h"}, REFUSED),
    "window of nothing": ({"window": "0s"}, REFUSED),
    "negative window": ({"window": "-5m"}, REFUSED),
    "odd window": ({"window": "7m"}, REFUSED),
    "window of digits": ({"window": "9" * 5000 + "h"}, REFUSED),
    "window of other digits": ({"window": "٣m"}, REFUSED),
    "commit interval": (
        {"lake": {"path": "@ROOM@/out/lake", "commit_interval": "99999h"}},
        REFUSED,
    ),
    "lake of a file": ({"lake": {"path": "@ROOM@/agent.yaml"}}, REFUSED),
    "lake of a device": ({"lake": {"path": "/dev/null"}}, REFUSED),
    "lake of nothing": ({"lake": {"path": ""}}, REFUSED),
    "lake with NUL": ({"lake": {"path": "/tmp/x\x00y"}}, REFUSED),  # noqa: S108 - is refused
    "lake by http": ({"lake": {"path": "http://@CANARY@/lake"}}, REFUSED),
    "lake of an unknown kind": ({"lake": {"path": f"zz://u:{SECRET}@host/lake"}}, REFUSED),
    "spool of a folder": ({"spool": {"path": "@ROOM@/out"}}, REFUSED),
    "spool of a device": ({"spool": {"path": "/dev/full"}}, REFUSED),
    "spool of a text file": ({"spool": {"path": "@ROOM@/agent.yaml"}}, REFUSED),
    "spool below a file": ({"spool": {"path": "@ROOM@/agent.yaml/spool.db"}}, REFUSED),
    "huge spool": ({"spool": {"path": "@ROOM@/out/s.db", "max_size": "999999999GiB"}}, REFUSED),
    "health port": ({"health": {"port": 70_000}}, REFUSED),
    "series without end": ({"health": {"port": 0, "series": 10**18}}, REFUSED),
    "memory of nothing": ({"limits": {"memory": "0MiB"}}, REFUSED),
    "unknown family": ({"families": {"../../x": {"enabled": True}}}, REFUSED),
    "catalogue above": ({"catalogue": "../outside"}, EITHER),
    "catalogue of a device": ({"catalogue": "/dev/zero"}, REFUSED),
    "names without end": ({"names": {"topics": {"include": ["*" * 10_000]}}}, EITHER),
    "pattern of brackets": ({"names": {"topics": {"include": ["[" * 2_000]}}}, EITHER),
}
_ENVIRONS: Final[dict[str, tuple[dict[str, str], Codes]]] = {
    "http proxy": (
        dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), "http://@CANARY@/"), TAKEN
    ),
    "C": ({"LANG": "C", "LC_ALL": "C"}, TAKEN),
    "unknown locale": ({"LANG": "zz_ZZ.UTF-99", "LC_ALL": "zz"}, TAKEN),
    "no home": ({"HOME": "/nonexistent"}, TAKEN),
    "home of a device": ({"HOME": "/dev/null"}, TAKEN),
    "no folder for temporary files": ({"TMPDIR": "/nonexistent"}, EITHER),
    "unknown time zone": ({"TZ": "../../../../@OUTSIDE@"}, TAKEN),
    "time zone of SQL": ({"TZ": "x'; COPY"}, TAKEN),
    "java options": ({"JAVA_TOOL_OPTIONS": "-agentlib:jdwp=transport=dt_socket,server=y,address=0",
                      "_JAVA_OPTIONS": "-Xmx1m"}, TAKEN),
    "key that is unknown": ({"JMXLAKE_AGENT__X__Y": SECRET}, REFUSED),
    "key that is deep": ({"JMXLAKE_AGENT__SOURCE" + "__A" * 500: "1"}, REFUSED),
    "value of a bomb": ({"JMXLAKE_AGENT__WINDOW": "[" * 5_000}, REFUSED),
    "value of a tag": ({"JMXLAKE_AGENT__WINDOW": "!!python/object/apply:os.system [id]"}, REFUSED),
    "value of a date": ({"JMXLAKE_AGENT__WINDOW": "2026-99-99"}, REFUSED),
    "python path": ({"PYTHONSTARTUP": "@ROOM@/evil.py"}, TAKEN),
}  # fmt: skip


def cases() -> Iterator[Case]:
    """URLs, other settings, and variables."""
    for name, url in _URLS.items():
        lay = partial(_lay, changed={"source": url})
        listed = (Command(_CHECK, REFUSED, lines=12), Command(_SCRAPE, REFUSED))
        yield Case("settings", f"url: {name}", lay, listed)
    for name, (changed, codes) in _KEYS.items():
        yield Case("settings", name, partial(_lay, changed=changed), (Command(_CHECK, codes),))
    for name, (variables, codes) in _ENVIRONS.items():
        once = Command(_SCRAPE, codes, environ=variables)
        yield Case(
            "environment", name, partial(_lay, changed={}), (once, *_report(name, variables))
        )


def _report(name: str, variables: dict[str, str]) -> tuple[Command, ...]:
    if "value" in name or "key" in name:
        return ()
    words = ("jmxlake", "slo", "list")
    return (Command(words, TAKEN, environ=variables),)


def _lay(room: Room, changed: dict[str, Any]) -> None:
    told = settings(room, serving(room, page("orders")))
    if "source" in changed:
        told["source"]["prometheus"]["url"] = changed["source"]
    told |= {key: one for key, one in changed.items() if key != "source"}
    filled = _filled(told, room)
    room.write("evil.py", f"open({str(room.ran)!r}, 'w')\n")
    configured(room, filled)


def _filled(content: Any, room: Room) -> Any:
    if isinstance(content, dict):
        return {key: _filled(one, room) for key, one in content.items()}
    if isinstance(content, list):
        return [_filled(one, room) for one in content]
    return room.fill(content) if isinstance(content, str) else content
