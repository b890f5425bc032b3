"""What each channel of a report states, taken apart into statements on one fact each."""

from __future__ import annotations

import json
import re
from email import message_from_string, policy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.page_reader import Node, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LABELS: Final = {
    "Writes unavailable": "writes_unavailable",
    "No leader": "no_leader",
    "Messages lost unread": "messages_lost",
    "Clients throttled": "clients_throttled",
    "Coverage, all sources": "coverage",
    "Requests failed": "requests_failed",
    "Produce p99 above limit": "produce_latency",
    "Highest produce p99": "produce_latency",
}
"""Labels of tiles, and the key figure that each is about."""
_WIDTH: Final = 80
_MARKS: Final = "✗!?-~✓"
_UNIT: Final = r"[\d.]+ (?:d|h|min|s|ms)"
_LENGTH: Final = rf"(?:{_UNIT}(?: {_UNIT})?|0|not known)(?: in total)?"
_OTHERS: Final = re.compile(r" *\d+ more events? (?:is|are) in the report\.")
_INVISIBLE: Final = re.compile("[\u200c\u2068\u2069]")


class Statement(NamedTuple):
    """A text of a channel, and what it is about.

    Attributes:
        channel: ``page``, ``terminal``, ``mail``, ``Slack``, ``Teams``, ``PDF`` or ``CSV``.
        about: ``headline``, ``lead``, ``tile``, ``event``, ``objective``, ``note``, ``detail`` or
            ``row``.
        key: Label of a tile, number of an event, title of an objective, section of a detail.
        field: The part of it, such as ``value`` or ``cause``.
        text: The text, with single spaces.
        names: Further texts that say which row it is about.
    """

    channel: str
    about: str
    key: str
    field: str
    text: str
    names: tuple[str, ...] = ()


def clean(text: str) -> str:
    """Return a text with single spaces, without marks that only keep names apart."""
    return " ".join(_INVISIBLE.sub("", text).replace("\u00a0", " ").split())


def given(*statements: Statement) -> Iterator[Statement]:
    """Yield the statements that say something, with clean texts."""
    for one in statements:
        if text := clean(one.text):
            yield one._replace(
                text=text, key=clean(one.key), names=tuple(filter(None, map(clean, one.names)))
            )


def of_page(html: str) -> list[Statement]:
    """Return the statements of the page."""
    page = read(html)
    return [
        *_opening(page),
        *_tiles_of_page(page),
        *_events_of_page(page),
        *_objectives_of_page(page),
        *_details_of_page(page),
    ]


def _opening(page: Node) -> Iterator[Statement]:
    status = page.one("h1").one("span", class_="state").attributes["class"].rpartition("is-")[2]
    head = page.one("h1").text
    yield from given(
        Statement("page", "headline", status, "text", head),
        *(Statement("page", "lead", "", "text", one.text) for one in page.all("p", class_="lead")),
    )
    for section in ("events", "objectives"):
        for note in page.one("section", id=section).all("p"):
            if note.attributes.get("class") in {"note", "meta", "unknown"}:
                yield from given(Statement("page", "note", section, "text", note.text))


def _tiles_of_page(page: Node) -> Iterator[Statement]:
    for tile in page.all("a", class_="tile"):
        key = tile.one(class_="label").text
        status = tile.attributes["class"].rpartition("is-")[2]
        yield from given(
            Statement("page", "tile", key, "status", status),
            Statement("page", "tile", key, "value", tile.one(class_="value").text),
            Statement("page", "tile", key, "note", tile.one(class_="sub").text),
            Statement("page", "tile", key, "delta", tile.one(class_="delta").text),
            Statement("page", "tile", key, "title", tile.attributes.get("title", "")),
        )


def _events_of_page(page: Node) -> Iterator[Statement]:
    for card in page.all("li"):
        key = card.attributes.get("id", "").removeprefix("event-")
        if not key.isdigit():
            continue
        when = card.one("p", class_="when")
        spans = [one for one in when.children if isinstance(one, Node)]
        heading = next((one for tag in ("h3", "b") for one in _own(card, tag)), None)
        chips = [one.text for one in card.all("span", class_="chip")]
        dl = {
            term.text: text.text
            for one in card.all("dl")
            for term, text in zip(one.all("dt"), one.all("dd"), strict=True)
        }
        impact = "".join(
            _without_chips(one.children) for one in _own(card, "p") if not one.attributes
        )
        foot = next(iter(card.all("p", class_="foot")), None)
        status = card.attributes.get("class", "").rpartition("is-")[2]
        owner = "" if foot is None else foot.one("span").text
        used = "" if foot is None else "".join(one.text for one in foot.all("a"))
        title = "" if heading is None else heading.text
        impact = impact or _without_chips(_after_title(card))
        yield from given(
            Statement("page", "event", key, "status", status),
            Statement("page", "event", key, "when", spans[0].text.removeprefix(key)),
            Statement("page", "event", key, "length", spans[1].text),
            Statement("page", "event", key, "repeats", "".join(c for c in chips if "week" in c)),
            Statement("page", "event", key, "title", title),
            Statement("page", "event", key, "impact", impact),
            Statement("page", "event", key, "cause", dl.get("Cause", "")),
            Statement("page", "event", key, "next", dl.get("Next", "")),
            Statement("page", "event", key, "owner", owner),
            Statement("page", "event", key, "used", used),
        )


def _own(card: Node, tag: str) -> list[Node]:
    """Return the children of a card with this tag."""
    return [one for one in card.children if isinstance(one, Node) and one.tag == tag]


def _without_chips(children: Iterable[Node | str]) -> str:
    """Return the text of parts, without chips."""
    texts = (
        one if isinstance(one, str) else one.raw
        for one in children
        if isinstance(one, str) or one.attributes.get("class") != "chip"
    )
    return " ".join("".join(texts).split())


def _after_title(card: Node) -> Iterator[Node | str]:
    """Yield the parts of a card in the list of smaller events, behind its title."""
    is_after = False
    for one in card.children:
        if isinstance(one, Node) and one.tag == "br":
            is_after = True
        elif is_after:
            yield one


def _objectives_of_page(page: Node) -> Iterator[Statement]:
    for table in page.all("table", class_="slo"):
        for row in table.one("tbody").all("tr"):
            what, attained = row.one("td", class_="what"), row.one("td", class_="r")
            key = what.one("b").text
            small = [one.text for one in attained.all("small")]
            whole = attained.text
            for one in small:
                whole = whole.replace(one, "")
            figures = list(row.all("td", class_="r"))
            pictures = {one.attributes.get("class"): one for one in row.all("svg")}
            label = {name: one.attributes.get("aria-label", "") for name, one in pictures.items()}
            owner = "".join(one.text for one in row.all("td", class_="owner"))
            yield from given(
                Statement("page", "objective", key, "status", row.one("th").text),
                Statement("page", "objective", key, "worst", what.one("small").text),
                Statement("page", "objective", key, "attained", whole),
                Statement("page", "objective", key, "bounds", attained.attributes.get("title", "")),
                Statement("page", "objective", key, "target", small[0].removeprefix("target ")),
                Statement("page", "objective", key, "note", " ".join(small[1:])),
                Statement("page", "objective", key, "used", figures[1].text),
                Statement("page", "objective", key, "bar", label.get("budget", "")),
                Statement("page", "objective", key, "left", label.get("burn", "")),
                Statement("page", "objective", key, "weeks", label.get("weeks", "")),
                Statement("page", "objective", key, "owner", owner),
            )


def _details_of_page(page: Node) -> Iterator[Statement]:
    for fold in page.all("details"):
        anchor = next(
            one.attributes["id"].removeprefix("d-")
            for one in fold.all("div")
            if one.attributes.get("id", "").startswith("d-")
        )
        yield from given(
            Statement("page", "detail", anchor, "line", fold.one("summary").one("span").text)
        )
        for table in fold.all("table"):
            headings = [one.text for one in table.one("thead").all("th")]
            for row in table.one("tbody").all("tr"):
                cells = [one for one in row.children if isinstance(one, Node)]
                names = tuple(one.text for cell in cells for one in (cell, *cell.all("bdi")))
                for heading, cell in zip(headings, cells, strict=True):
                    text = "; ".join(filter(None, (cell.text, cell.attributes.get("title", ""))))
                    yield from given(Statement("page", "row", anchor, heading, text, names))
        for note in fold.all("p", class_="note"):
            for sentence in re.split(r"(?<=\.) (?=[A-Z0-9])", note.text):
                if sentence.startswith(("Not observed", "The other")):
                    yield from given(Statement("page", "detail", anchor, "note", sentence))


def of_terminal(text: str, channel: str = "terminal") -> list[Statement]:
    """Return the statements of the summary in 80 columns."""
    found: list[Statement] = []
    blocks = re.split(r"\n\n", _INVISIBLE.sub("", text).strip("\n"))
    for nth, block in enumerate(blocks):
        lines = block.splitlines()
        if nth == 1:
            found += given(Statement(channel, "headline", "", "text", block.lstrip(_MARKS)))
        elif lines[0] == "Events":
            found += _events_of_terminal(lines[1:], channel)
        elif lines[0].startswith("Objectives "):
            found += _objectives_of_terminal(lines, channel)
        elif any(lines[0].strip().startswith(label) for label in LABELS) and block[0] == " ":
            found += _tiles_of_terminal(lines, channel)
        elif nth and not lines[0].startswith(("Details: ", "Report: ", "Attached: ", "Legend: ")):
            about = "lead" if nth == 2 else "note"
            found += given(Statement(channel, about, "objectives", "text", block))
    return found


def _tiles_of_terminal(lines: list[str], channel: str) -> Iterator[Statement]:
    """Yield the cells of tiles; a cell may go on in the lines below, in its columns.

    A report without a week has no column with the change.
    """
    split = [
        [(one.start(), one[0]) for one in re.finditer(r"\S+(?: \S+)*", line)] for line in lines
    ]
    rows = [cells for cells in split if cells[0][1] in LABELS]
    starts = [start for cells in rows for start, _ in cells[3:]]
    last = max(starts, default=_WIDTH)
    tiles: list[list[str]] = []
    for cells in split:
        if cells[0][1] in LABELS:
            tiles.append([cells[0][1], cells[1][1], "", ""])
        for start, text in cells[2 if cells[0][1] in LABELS else 0 :]:
            tiles[-1][3 if start >= last else 2] += f" {text}"
    for label, value, note, delta in tiles:
        yield from given(
            Statement(channel, "tile", label, "value", value),
            Statement(channel, "tile", label, "note", note),
            Statement(channel, "tile", label, "delta", delta),
        )


def _events_of_terminal(lines: list[str], channel: str) -> Iterator[Statement]:
    blocks: list[list[str]] = []
    for line in lines:
        if _OTHERS.fullmatch(line):
            continue
        if re.match(r"  \d+ \S", line):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
    for first, *rest in blocks:
        match = re.fullmatch(rf"  (\d+) (.*?) +({_LENGTH})", first)
        assert match, f"no event: {first!r}"
        key, title, length = match.groups()
        yield from given(
            Statement(channel, "event", key, "length", length),
            Statement(channel, "event", key, "story", " ".join((title, *rest))),
        )


def _objectives_of_terminal(lines: list[str], channel: str) -> Iterator[Statement]:
    head = lines[0]
    attained = head.index("Attained") + len("Attained")
    bar = head.index("Budget used")
    rows: list[list[str]] = []
    for line in lines[1:]:
        padded = line.ljust(_WIDTH)
        is_first = line[:1] in _MARKS and line[1:2] == " "
        cells = [padded[: attained - 10], padded[attained - 10 : attained],
                 padded[attained:bar], padded[bar : bar + 22], padded[bar + 22 :]]  # fmt: skip
        if is_first:
            rows.append(cells)
        elif rows:
            rows[-1] = [f"{old} {new}" for old, new in zip(rows[-1], cells, strict=True)]
    for title, share, target, drawn, used in rows:
        key = title[1:]
        yield from given(
            Statement(channel, "objective", key, "mark", title[:1]),
            Statement(channel, "objective", key, "attained", share),
            Statement(channel, "objective", key, "target", target),
            Statement(channel, "objective", key, "drawn", drawn),
            Statement(channel, "objective", key, "used", used),
        )


def of_mail(message: str) -> list[Statement]:
    """Return the statements of a mail: its subject, its text and its HTML."""
    mail = message_from_string(message, policy=policy.default)
    subject = str(mail["Subject"]).strip().removeprefix("Kafka SLO: ").partition(";")[0]
    text = mail.get_body(("plain",))
    html = mail.get_body(("html",))
    assert text is not None
    assert html is not None
    return [
        *given(Statement("mail", "headline", "", "text", subject)),
        *of_terminal(text.get_content().replace("\r\n", "\n"), "mail"),
        *_of_mail_html(read(html.get_content())),
    ]


def _of_mail_html(page: Node) -> Iterator[Statement]:
    yield from given(Statement("mail", "headline", "", "text", page.one("h1").text))
    for row in page.all("tr"):
        cells = [one for one in row.children if isinstance(one, Node)]
        texts = [one.text for one in cells]
        label = next((one for one in LABELS if texts and texts[0].startswith(one)), None)
        if label and len(cells) == 3:
            yield from given(
                Statement("mail", "tile", label, "value", texts[1]),
                Statement("mail", "tile", label, "note", texts[0].removeprefix(label)),
                Statement("mail", "tile", label, "delta", texts[2]),
            )
        elif len(cells) == 4 and cells[0].tag == "td":
            yield from given(
                Statement("mail", "objective", texts[1], "status", texts[0]),
                Statement("mail", "objective", texts[1], "attained", texts[2]),
                Statement("mail", "objective", texts[1], "used", texts[3]),
            )
        elif len(cells) == 1 and (found := re.match(r"(\d+)\. ", texts[0])):
            titles = [one for one in cells[0].children if isinstance(one, Node) and one.tag == "b"]
            if titles:
                yield from given(
                    Statement("mail", "event", found[1], "title",
                              titles[0].text.removeprefix(found[0])),
                    Statement("mail", "event", found[1], "story",
                              "".join(_parts(cells[0])).strip().removeprefix(found[0])),
                )  # fmt: skip


def _parts(node: Node) -> Iterator[str]:
    for one in node.children:
        yield one if isinstance(one, str) else " " if one.tag == "br" else one.raw


def of_slack(message: dict[str, Any]) -> list[Statement]:
    """Return the statements of a message of Slack."""
    found: list[Statement] = []
    is_about = True
    for block in message["blocks"]:
        if block["type"] == "header":
            found += given(Statement("Slack", "headline", "", "text", block["text"]["text"]))
        elif "fields" in block:
            for field in block["fields"]:
                label, _, rest = field["text"].partition("\n")
                value, _, context = rest.partition(" (")
                found += _tile_in_chat("Slack", label, value, context.removesuffix(")"))
        elif block["type"] == "section":
            found += _section_of_chat("Slack", block["text"]["text"].splitlines())
        elif block["type"] == "context" and not is_about:
            for one in block["elements"]:
                found += given(Statement("Slack", "note", "objectives", "text", one["text"]))
        is_about = is_about and block["type"] != "context"
    return found


def of_teams(message: dict[str, Any]) -> list[Statement]:
    """Return the statements of a card of Teams."""
    found: list[Statement] = []
    body = message["attachments"][0]["content"]["body"]
    lines: list[str] = []
    found += given(Statement("Teams", "headline", "", "text", _run_text(body[0])))
    for block in body[2:]:
        if block["type"] == "ColumnSet":
            label, value, context = (_run_text(one["items"][0]) for one in block["columns"])
            found += _tile_in_chat("Teams", label, value, context)
            continue
        text = _run_text(block)
        is_note = block.get("separator") and not re.match(r"\d+\. ", text)
        if (block.get("separator") or is_note) and lines:
            found += _section_of_chat("Teams", lines)
            lines = []
        if is_note:
            found += given(Statement("Teams", "note", "objectives", "text", text))
        else:
            lines.append(text)
    return found + (list(_section_of_chat("Teams", lines)) if lines else [])


def _run_text(block: dict[str, Any]) -> str:
    return "".join(run["text"] for run in block["inlines"])


def _tile_in_chat(channel: str, label: str, value: str, context: str) -> Iterator[Statement]:
    note, _, delta = context.rpartition("; ")
    if re.fullmatch(r"no clear change|\S+ not fully known", delta):
        note, _, more = note.rpartition("; ")
        delta = f"{more}; {delta}"
    if not note and not re.search(r" vs |same as|no earlier|W\d\d|not over|clear", delta):
        note, delta = delta, ""
    yield from given(
        Statement(channel, "tile", label, "value", value),
        Statement(channel, "tile", label, "note", note),
        Statement(channel, "tile", label, "delta", delta),
    )


def _section_of_chat(channel: str, lines: list[str]) -> Iterator[Statement]:
    found = re.match(r"(\d+)\. ", lines[0])
    if not found:
        yield from given(Statement(channel, "lead", "", "text", " ".join(lines)))
        return
    key = found[1]
    title, _, time = lines[0].removeprefix(found[0]).rpartition(" (")
    story = " ".join((title, time.removesuffix(")"), *lines[1:]))
    yield from given(
        Statement(channel, "event", key, "title", title),
        Statement(channel, "event", key, "story", story),
    )


def of_dry_run(printed: str) -> tuple[str, dict[str, Any]]:
    """Return the mail and the message for a chat that ``jmxlake send --dry-run`` printed."""
    start = printed.rindex("\n{\n") + 1
    return printed[:start], json.loads(printed[start:])
