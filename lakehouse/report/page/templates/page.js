// The page is complete without this script: it sorts and filters.
for (const table of document.querySelectorAll("table[data-sort]")) {
  const cells = [...table.tHead.rows[0].cells];
  cells.forEach((th, n) => {
    if (th.classList.contains("plain")) return;
    const column = cells.slice(0, n).reduce((sum, cell) => sum + cell.colSpan, 0);
    const button = document.createElement("button");
    button.type = "button";
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener("click", () => {
      const down = th.getAttribute("aria-sort") === "ascending";
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.replace(/[ ,\u00a0]/g, "");
      const compared = (a, b) => key(a).localeCompare(key(b), "en", { numeric: true }) * (down ? -1 : 1);
      cells.forEach((cell) => cell.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compared));
    });
  });
}
const filter = document.querySelector(".filter");
if (filter) {
  filter.hidden = false;
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const fold of document.querySelectorAll("#details > details")) {
      const rows = [...fold.querySelectorAll("tbody tr")];
      rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
      fold.hidden = Boolean(wanted) && rows.every((row) => row.hidden);
      if (wanted) fold.open = !fold.hidden;
    }
  });
}
