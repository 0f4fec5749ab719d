// One case: the reading grid in place of the plain row of images, and keys for everything.
import {ReadingGrid, imagesOf} from "./grid.js";
import {Keys, imageKeys} from "./keys.js";

const place = document.getElementById("grid");
const images = place ? imagesOf(place) : [];
const groups = [];
const follow = (rel) => document.querySelector(`nav a[rel=${rel}]`)?.click();
const calls = [...document.querySelectorAll(".call")];
const toggleCalls = () => { const open = calls.some((call) => !call.open); for (const call of calls) call.open = open; };

groups.push({name: "Case", keys: [
  {id: "case.next", keys: ["j"], label: "Next case of the list", run: () => follow("next")},
  {id: "case.previous", keys: ["k"], label: "Previous case", run: () => follow("prev")},
  {id: "case.calls", keys: ["e"], label: "Open or close all calls", run: toggleCalls},
]});
const options = [...document.querySelectorAll(".pick input[name=option]")];
if (options.length) groups[0].keys.push({id: "case.answer", keys: options.map((_, n) => String(n + 1)), label: "Choose an option", run: (event, key) => { options[Number(key) - 1].checked = true; options[Number(key) - 1].focus(); }});
if (images.length) {
  place.replaceChildren();
  place.removeAttribute("tabindex");
  place.classList.remove("film-page");
  const grid = new ReadingGrid(place, {images, layout: images.length > 4 ? 4 : images.length, name: "Images of the case"});
  groups.push(imageKeys(grid, {digits: !options.length}));
  for (const link of document.querySelectorAll("[data-image]")) link.addEventListener("click", (event) => {
    const at = images.findIndex((image) => image.id === link.dataset.image);
    if (at < 0 || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    grid.commands.jump(at + 1);
  });
}
const keys = new Keys(groups);
const help = document.querySelector("[data-keys]");
help.hidden = false;
help.addEventListener("click", () => keys.help());
const all = document.querySelector("[data-all-calls]");
if (all) { all.hidden = false; all.addEventListener("click", toggleCalls); }
if (location.hash.startsWith("#call-")) { const call = document.getElementById(location.hash.slice(1)); if (call) { call.open = true; call.scrollIntoView(); } }
