// The page is complete without this: it only lets columns be sorted and long lists be searched.
"use strict";

function sortKey(row, column) {
  const cell = row.cells[column];
  const order = cell.dataset.o;
  return order === undefined ? cell.textContent.trim() : order;
}

function compare(a, b) {
  // What is not known has no number and stands last, whichever way is sorted.
  const x = Number(a), y = Number(b);
  if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return a.localeCompare(b, "en", { numeric: true });
}

function sortBy(table, column, heading) {
  const down = heading.getAttribute("aria-sort") === "descending";
  const sign = down ? 1 : -1;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "ascending" : "descending");
  const numeric = heading.classList.contains("n");
  const isLast = (row) => numeric && row.cells[column].dataset.o === undefined;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => isLast(a) - isLast(b) || sign * compare(sortKey(a, column), sortKey(b, column)));
  table.tBodies[0].append(...rows);
}

function makeSortable(table) {
  if (table.tBodies[0].rows.length < 2) return;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.replaceChildren(button);
  });
}

function makeSearchable(listing) {
  const more = listing.querySelector("details.more");
  if (!more) return;
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

document.querySelectorAll("table").forEach(makeSortable);
document.querySelectorAll(".listing").forEach(makeSearchable);

// A printed page has no folds, but of what is met nobody needs every subject on paper.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not(.more)"))
    if (!fold.closest(".verdict.is-met")) fold.open = true;
});
