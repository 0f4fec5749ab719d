// Lists that follow the filters and a run in progress: the same page is requested again and its parts marked data-swap are
// put in place. The server does the filtering, so that everything also works without this script.
const parts = () => [...document.querySelectorAll("[data-swap]")];
const form = document.querySelector("[data-filter]");
const EVERY_MS = 2000;
let asked = 0;

async function swap(address) {
  const turn = ++asked;
  let answer;
  try {
    answer = await fetch(address, {headers: {accept: "text/html"}});
  } catch {
    return;   // the server is gone or busy: what is shown stays
  }
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (turn !== asked) return;   // a later request was made meanwhile
  for (const old of parts()) {
    const now = fresh.getElementById(old.id);
    if (!now || old.innerHTML === now.innerHTML) continue;
    const picked = [...old.querySelectorAll("input:checked")].map((one) => `${one.name}=${one.value}`);
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceChildren(...now.childNodes);
    old.toggleAttribute("data-running", now.hasAttribute("data-running"));
    for (const one of old.querySelectorAll("input[type=radio]")) one.checked = picked.includes(`${one.name}=${one.value}`);
    if (focused) [...old.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused)?.focus({preventScroll: true});
  }
}

function go(address) {
  history.replaceState(null, "", address);
  return swap(address);
}

function written() {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  return query.size ? `?${query}` : location.pathname;
}

// The form mirrors the URL. A list of choices that the URL does not name keeps its defaults.
function fill(field, values) {
  if (field.type === "checkbox" || field.type === "radio") { if (values.length || field.name !== "col") field.checked = values.includes(field.value); }
  else if (!(field.type === "hidden" && field.name === "col")) field.value = values[0] ?? "";
}

if (form) {
  let wait;
  for (const button of form.elements) if ("apply" in button.dataset) button.hidden = true;
  document.addEventListener("input", (event) => {
    if (event.target.form !== form) return;
    clearTimeout(wait);
    // Choosing another run changes which filters there are: that is another page.
    if (event.target.name === "against") { form.requestSubmit(); return; }
    wait = setTimeout(() => go(written()), event.target.name === "q" ? 150 : 0);
  });
  form.addEventListener("submit", () => { for (const field of form.elements) if (field.name && !field.value) field.disabled = true; });
  addEventListener("pageshow", () => { for (const field of form.elements) field.disabled = false; });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-swap-link]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const query = new URL(link.href).searchParams;
  if (form) for (const field of form.elements) if (field.name) fill(field, query.getAll(field.name));
  go(link.getAttribute("href") === "?" ? location.pathname : link.getAttribute("href"));
});

setInterval(() => {
  if (document.visibilityState === "visible" && document.querySelector("[data-running]")) swap(location.href);
}, EVERY_MS);

document.addEventListener("keydown", (event) => {   // J and K through the rows; Enter opens, as on any link
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== "j" && event.key !== "k") return;
  const rows = [...document.querySelectorAll("tbody tr")], at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[Math.min(rows.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))]?.querySelector("a")?.focus();
});
