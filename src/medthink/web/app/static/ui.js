// Small helpers shared by every page: copy buttons, menus that close on Escape or outside, / for the search.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1600);
  });
}
const menus = [...document.querySelectorAll("details.menu")];
addEventListener("click", (event) => { for (const menu of menus) if (!menu.contains(event.target)) menu.open = false; });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of menus) if (menu.open) { menu.open = false; menu.querySelector("summary").focus(); }
    if (event.target.matches?.("[data-slash]")) event.target.blur();
  }
  if (event.key !== "/" || event.target.matches?.("input, textarea, select")) return;
  const search = document.querySelector("[data-slash]");
  if (search) { event.preventDefault(); search.focus(); search.select(); }
});
