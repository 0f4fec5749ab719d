// The board: rows open to the slices of their model's own page. Where there is no server to sort and filter, columns are
// sorted and rows found here; ranks stay what they are.
document.documentElement.classList.add("scripted");

const details = new Map();   // by row: the row that shows its slices, wherever sorting has put it

async function open(button) {
  const row = button.closest("tr"), is_open = button.getAttribute("aria-expanded") === "true";
  if (is_open) { details.get(row).remove(); details.delete(row); button.setAttribute("aria-expanded", "false"); return; }
  button.setAttribute("aria-expanded", "true");
  const detail = row.parentElement.insertRow(row.sectionRowIndex + 1), cell = detail.insertCell();
  detail.className = "detail";
  details.set(row, detail);
  cell.colSpan = row.cells.length;
  const link = document.createElement("a");
  link.href = button.dataset.expand;
  link.textContent = "Everything about this model";
  try {
    const page = new DOMParser().parseFromString(await (await fetch(link.href)).text(), "text/html");
    const slices = page.querySelector("[data-slices] .slice-columns");
    if (slices) cell.append(document.adoptNode(slices));
  } catch { /* a page opened from disk cannot read another one: the link leads there */ }
  cell.append(link);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-expand]");
  if (button) open(button);
});

const table = document.querySelector("[data-sortable]");
if (table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows].filter((row) => row.classList.contains("ranked")), labels = [...body.rows].filter((row) => !row.classList.contains("ranked"));
  const first = [...body.rows];   // scripts run before a row can be opened
  const value = (row, place) => {
    const given = heads[place].dataset.sort === "rank" ? row.dataset.v : row.cells[place].dataset.v ?? (heads[place].dataset.sort === "model" ? row.cells[place].textContent.trim().toLowerCase() : "");
    return given === "" ? null : Number.isNaN(Number(given)) ? given : Number(given);
  };
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "string" ? 1 : -1;

  function sort(head, down) {
    const place = heads.indexOf(head), keyed = rows.map((row) => [value(row, place), row]);
    const having = keyed.filter(([key]) => key !== null).sort(([a], [b]) => compare(a, b) * (down ? -1 : 1));
    const is_rank = head.dataset.sort === "rank" && !down;
    for (const one of heads) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.classList.toggle("loose", !is_rank);
    for (const label of labels) label.hidden = !is_rank;
    body.append(...(is_rank ? first : [...having, ...keyed.filter(([key]) => key === null)].map(([, row]) => row)));
    for (const [row, detail] of details) row.after(detail);
  }

  for (const head of heads.filter((one) => one.dataset.sort)) {
    const word = head.querySelector(".acc-word") ?? head, button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...(word === head ? [...head.childNodes] : [word.textContent]));
    word.replaceChildren(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      sort(head, now ? now === "ascending" : "down" in head.dataset);
    });
  }

  const find = document.querySelector("[data-find]"), field = find.querySelector("input"), count = document.getElementById("count"), words = count.textContent;
  find.hidden = false;
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !wanted.every((word) => row.cells[2].textContent.toLowerCase().includes(word));
      if (details.has(row)) details.get(row).hidden = row.hidden;
      shown += !row.hidden;
    }
    count.textContent = wanted.length ? `${shown} of ${rows.length} models shown; ranks are those of all` : words;
  });
}
