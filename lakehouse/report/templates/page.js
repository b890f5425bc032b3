// The page is complete without this script, which adds sortable columns, a search in long lists, and
// the value of a chart at an instant.
"use strict";

function sortKey(row, column) {
  const cell = row.cells[column];
  const order = cell.dataset.o;
  return order === undefined ? cell.textContent.trim() : order;
}

function compare(a, b) {
  // Values that are not known have no number and come last in both directions.
  const x = Number(a), y = Number(b);
  if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return a.localeCompare(b, "en", { numeric: true });
}

function sortBy(tables, column, heading) {
  // The rows behind the fold belong to the same list: both parts are sorted together.
  const down = heading.getAttribute("aria-sort") === "descending";
  const sign = down ? 1 : -1;
  const numeric = heading.classList.contains("n");
  const isLast = (row) => numeric && row.cells[column].dataset.o === undefined;
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  rows.sort((a, b) => isLast(a) - isLast(b) || sign * compare(sortKey(a, column), sortKey(b, column)));
  const lengths = tables.map((table) => table.tBodies[0].rows.length);
  tables.forEach((table, part) => {
    const headings = [...table.tHead.rows[0].cells];
    for (const other of headings) other.removeAttribute("aria-sort");
    headings[column].setAttribute("aria-sort", down ? "ascending" : "descending");
    table.tBodies[0].append(...rows.splice(0, lengths[part]));
  });
}

function makeSortable(listing) {
  const tables = [...listing.querySelectorAll("table")];
  if (tables[0].tBodies[0].rows.length < 2) return;
  for (const table of tables)
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sortBy(tables, column, heading));
      heading.replaceChildren(button);
    });
}

function makeSearchable(listing) {
  const more = listing.querySelector("details.more");
  if (!more || listing.querySelectorAll("tbody tr").length <= 20) return; // short enough to read
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.className = "search";
  label.append("Search ", input);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    more.open = wanted !== "";
    for (const row of listing.querySelectorAll("tbody tr"))
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  listing.prepend(label);
}

function clockOf(zone) {
  const parts = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit",
    second: "2-digit", hourCycle: "h23" };
  try {
    return new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: zone });
  } catch {
    return new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: "UTC", timeZoneName: "short" });
  }
}

function valueAt(spans, second, unit) {
  const span = spans.find(([start, length]) => second >= start && second < start + length);
  if (!span) return "not known";
  const [, , value, low, high] = span;
  const text = (number) => number.toLocaleString("en-GB", { maximumFractionDigits: 3 });
  const noun = value === 1 && /^[a-z]+s$/.test(unit) ? unit.slice(0, -1) : unit;
  const best = `${text(value)}\u00a0${noun}`;
  return low === undefined ? best : `${best} (${text(low)} to ${text(high)})`;
}

function cursorIn(drawing) {
  const plot = drawing.querySelector("g");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  line.setAttribute("class", "cursor");
  line.setAttribute("y2", "110");
  plot.append(line);
  return (share) => {
    const x = share * Number(drawing.dataset.plot);
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
  };
}

function makeAskable(figure) {
  // An invisible slider covers the chart: pointer, touch and arrow keys all move it.
  const [from, to] = figure.dataset.within.split(" ").map(Number);
  const spans = figure.dataset.spans.split(";").map((span) => span.split(",").map(Number));
  const drawings = [...figure.querySelectorAll(".chart")];
  const cursors = drawings.map(cursorIn);
  const clock = clockOf(document.documentElement.dataset.zone);
  const box = document.createElement("div"), slider = document.createElement("input"), readout = document.createElement("p");
  box.className = "askable";
  Object.assign(slider, { type: "range", min: 0, max: to - from - 1, step: 1, value: 0 });
  slider.setAttribute("aria-label", `Instant of: ${figure.querySelector("figcaption").textContent.split(":")[0]}`);
  readout.className = "readout";
  readout.setAttribute("aria-hidden", "true");
  drawings[0].before(box);
  box.append(...drawings, slider, readout);

  const update = () => {
    const second = Number(slider.value);
    const text = `${clock.format((from + second) * 1000)}: ${valueAt(spans, second, figure.dataset.unit)}`;
    slider.setAttribute("aria-valuetext", text);
    readout.textContent = text;
    cursors.forEach((move) => move(second / (to - from)));
  };
  const follow = (event) => {
    const drawing = drawings.find((one) => one.getClientRects().length);
    const seen = drawing.getBoundingClientRect(), scale = seen.width / drawing.viewBox.baseVal.width;
    const left = drawing.querySelector("g").transform.baseVal[0].matrix.e * scale;
    const share = (event.clientX - seen.left - left) / (Number(drawing.dataset.plot) * scale);
    slider.value = Math.round(Math.min(Math.max(share, 0), 1) * (to - from));
    update();
  };
  slider.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -24, PageUp: 24 }[event.key];
    if (!way) return;
    event.preventDefault();
    slider.value = Number(slider.value) + Math.round((way * (to - from)) / 240);
    update();
  });
  slider.addEventListener("input", update);
  slider.addEventListener("pointermove", follow);
  slider.addEventListener("pointerdown", (event) => {
    event.preventDefault(); // the slider would move to the place of its own thumb
    slider.focus({ preventScroll: true });
    follow(event);
  });
  update();
}

document.querySelectorAll(".listing").forEach(makeSortable);
document.querySelectorAll("figure[data-within]").forEach(makeAskable);
document.querySelectorAll(".listing").forEach(makeSearchable);

// A printed page has no folds, but the subjects of met objectives stay folded,
// and page.css limits the rows of long lists.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not([open])"))
    if (!fold.closest(".verdict.is-met")) {
      fold.classList.toggle("paper", fold.classList.contains("more"));
      fold.open = true;
    }
});
addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll("details.paper")) {
    fold.classList.remove("paper");
    fold.open = false;
  }
});
