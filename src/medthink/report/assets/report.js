// Sort tables by a click on a column's head, and filter long ones by words. Nothing is loaded and nothing is sent.
(() => {
  const number = (text) => {
    const found = text.replace(/\u2212/g, "-").replace(/,/g, "").match(/-?\d+(\.\d+)?/);
    return found ? Number(found[0]) : Number.NEGATIVE_INFINITY;
  };
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort !== undefined ? Number(cell.dataset.sort) : cell.textContent.trim();
  };
  const compare = (a, b, numeric) => {
    if (!numeric) return String(a).localeCompare(String(b));
    const [x, y] = [a, b].map((value) => (typeof value === "number" ? value : number(value)));
    return x === y ? 0 : x < y ? -1 : 1;
  };
  const sort = (table, head, column) => {
    const rows = [...table.tBodies[0].rows];
    const numeric = rows.some((row) => row.cells[column].dataset.sort || row.cells[column].className === "number");
    // The highest number or the first name comes on top; a second click turns the order round.
    const was = head.getAttribute("aria-sort");
    const up = was === null ? !numeric : was === "descending";
    rows.sort((a, b) => compare(key(a, column), key(b, column), numeric) * (up ? 1 : -1));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    table.tBodies[0].append(...rows);
  };
  const makeSortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head, column));
      head.append(button);
    });
  };
  const makeFilter = (box, table) => {
    const label = document.createElement("label");
    const field = document.createElement("input");
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    label.className = "filter";
    field.type = "search";
    label.append("Filter ", field, " ", count);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = `${shown} of ${table.tBodies[0].rows.length}`;
    });
    box.before(label);
  };
  for (const table of document.querySelectorAll(".box > table:not(.pairwise):not(.outputs)")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    makeSortable(table);
    if (table.tBodies[0].rows.length > 8) makeFilter(table.parentNode, table);
  }
  // A link from the matrix opens the case it leads to.
  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
