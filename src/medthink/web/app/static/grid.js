// Reading grid: 1-9 panes over the images of one case. Plain DOM, CSS transforms and filters, no dependency.
// Nothing here knows a diagnosis, a caption or a model: it shows what the JSON holds and reports what was done.
//
//   const grid = new ReadingGrid(element, {images: [{id, sources: [{src, w, h}], thumb, group?, caption?}], layout: 4});
//   grid.addEventListener("view", e => …)      image shown, zoom, contrast: for the log of reading time
//   grid.commands                              name → function, for keys.js and for buttons

/** The images that a page shows without script, as the grid takes them: their addresses stand in the markup. */
export const imagesOf = (element) => [...element.querySelectorAll("img[data-full]")].map((img) => {
  const w = Number(img.getAttribute("width")) || 1, h = Number(img.getAttribute("height")) || 1;
  const scale = Math.min(1, 1024 / Math.max(w, h));
  const small = {src: img.getAttribute("src"), w: Math.round(w * scale), h: Math.round(h * scale)};
  const sources = scale < 1 ? [small, {src: img.dataset.full, w, h}] : [small];
  return {id: img.dataset.number, sources, thumb: img.dataset.thumb, group: img.dataset.group || undefined, caption: img.dataset.caption || undefined};
});

const LAYOUTS = [1, 2, 4, 6, 9];
const COLUMNS = {1: 1, 2: 2, 4: 2, 6: 3, 9: 3};
const MAX_ZOOM = 16;
const neutral = () => ({zoom: 1, x: 0.5, y: 0.5, turn: 0, mirror: false, bright: 1, contrast: 1, invert: false});
const clamp = (v, low, high) => Math.min(high, Math.max(low, v));

export function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && !key.startsWith("aria")) node[key] = value;
    else if (value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

/** One image on a black stage. Knows its own view; the grid tells it what to show. */
class Pane {
  constructor(grid, number) {
    this.grid = grid;
    this.number = number;
    this.index = -1;
    this.pinned = false;
    this.img = make("img", {draggable: false, decoding: "async"});
    this.label = make("span", {class: "pane-label"});
    this.badges = make("span", {class: "pane-badges"});
    this.pin = make("button", {type: "button", class: "pane-pin", onclick: () => grid.togglePin(this)}, "Pin");
    this.lens = make("div", {class: "pane-lens"}, this.img);      // the filter sits on the pane, not on the file: its cost is the pane's size
    this.stage = make("div", {class: "pane-stage"}, this.lens);
    this.node = make("div", {class: "pane", role: "group", tabIndex: 0, "aria-roledescription": "image pane"},
      this.stage, make("div", {class: "pane-bar"}, this.label, this.badges, this.pin));
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  get image() { return this.grid.images[this.index]; }
  get view() { return this.grid.views[this.index]; }

  show(index) {
    if (index === this.index) return this.draw();
    this.index = index;
    this.node.hidden = index < 0;
    if (index < 0) return;
    this.source = null;
    this.img.alt = this.grid.name(index);
    this.draw();
  }

  // The view is kept in the image's own terms (zoom over fit, centre as a fraction), so it survives
  // another pane size, another rendition of the file, and can be handed to a linked image.
  draw() {
    if (this.index < 0) return;
    const width = this.stage.clientWidth, height = this.stage.clientHeight;
    if (!width || !height) return;
    const v = this.view, full = this.image.sources.at(-1), odd = v.turn % 180 !== 0;
    const fit = Math.min(width / (odd ? full.h : full.w), height / (odd ? full.w : full.h));
    const scale = fit * v.zoom;
    this.scale = scale;
    this.pick(full.w * scale * devicePixelRatio);
    this.img.width = full.w;
    this.img.height = full.h;
    const half = (size, room) => (size * scale <= room ? 0.5 : room / (2 * size * scale));
    const hx = half(full.w, odd ? height : width), hy = half(full.h, odd ? width : height);
    v.x = clamp(v.x, hx, 1 - hx);
    v.y = clamp(v.y, hy, 1 - hy);
    this.img.style.transform = `translate(${width / 2}px, ${height / 2}px) rotate(${v.turn}deg) ` +
      `scale(${scale * (v.mirror ? -1 : 1)}, ${scale}) translate(${-v.x * full.w}px, ${-v.y * full.h}px)`;
    const changed = v.invert || v.bright !== 1 || v.contrast !== 1;
    this.lens.style.filter = changed ? `invert(${v.invert ? 1 : 0}) brightness(${v.bright}) contrast(${v.contrast})` : "";
    this.stage.classList.toggle("is-zoomed", v.zoom > 1.001);
    if (!this.grid.frame) this.write();
  }

  pick(pixels) {   // the smallest rendition that is sharp at this size; never back to a smaller one
    const list = this.image.sources;
    let n = list.findIndex((s) => s.w >= pixels * 0.95);
    if (n < 0) n = list.length - 1;
    if (this.source !== null && n <= this.source) return;
    const first = this.source === null;
    this.source = n;
    const src = list[n].src;
    if (first) { this.img.src = src; return; }
    const wait = new Image();          // swap only once decoded: no flash while zooming
    wait.src = src;
    wait.decode().then(() => { if (this.image?.sources[n].src === src) this.img.src = src; }, () => {});
  }

  write() {
    const v = this.view, g = this.grid, badges = [];
    const narrow = this.stage.clientWidth < 210;
    this.badges.hidden = narrow && this.pinned;
    this.label.textContent = this.image.group && !narrow ? `${this.index + 1} · ${this.image.group}` : `${this.index + 1}`;
    if (v.zoom > 1.001) badges.push(`${Math.round(v.zoom * 100)} %`);
    if (v.invert) badges.push("inverted");
    if (v.bright !== 1 || v.contrast !== 1) badges.push(`contrast ${Math.round(v.contrast * 100)} / ${Math.round(v.bright * 100)}`);
    if (v.turn) badges.push(`turned ${v.turn}°`);
    if (v.mirror) badges.push("MIRRORED");
    if (g.marked.has(this.image.id)) badges.push("relied on");
    if (g.blinking === this) badges.push("blink: pinned image");
    this.badges.textContent = badges.join(" · ");
    this.pin.textContent = this.pinned ? "Pinned" : "Pin";
    this.pin.setAttribute("aria-pressed", String(this.pinned));
    this.pin.setAttribute("aria-label", `Pin image ${this.index + 1} in pane ${this.number + 1}`);
    this.node.classList.toggle("is-pinned", this.pinned);
    this.node.setAttribute("aria-label", `Pane ${this.number + 1}: ${g.name(this.index)}` +
      (this.pinned ? ", pinned" : "") + (badges.length ? `, ${badges.join(", ")}` : ""));
  }

  zoomAt(factor, clientX, clientY) {
    const v = this.view, box = this.stage.getBoundingClientRect();
    const before = this.toImage(clientX - box.left, clientY - box.top);
    v.zoom = clamp(v.zoom * factor, 1, MAX_ZOOM);
    this.draw();
    const after = this.toImage(clientX - box.left, clientY - box.top);
    v.x += before.x - after.x;
    v.y += before.y - after.y;
    this.grid.changed(this, "zoom");
  }

  toImage(px, py) {
    const v = this.view, full = this.image.sources.at(-1), angle = (-v.turn * Math.PI) / 180;
    const dx = px - this.stage.clientWidth / 2, dy = py - this.stage.clientHeight / 2;
    const rx = dx * Math.cos(angle) - dy * Math.sin(angle), ry = dx * Math.sin(angle) + dy * Math.cos(angle);
    return {x: v.x + ((v.mirror ? -1 : 1) * rx) / (this.scale * full.w), y: v.y + ry / (this.scale * full.h)};
  }

  panBy(dx, dy) {   // screen pixels
    const from = this.toImage(0, 0), to = this.toImage(dx, dy);
    this.view.x -= to.x - from.x;
    this.view.y -= to.y - from.y;
    this.grid.changed(this, "pan");
  }

  listen() {
    const s = this.stage, g = this.grid;
    this.node.addEventListener("focusin", () => g.activate(this));
    s.addEventListener("pointerdown", (e) => {
      if (e.button > 1) return;
      this.node.focus({preventScroll: true});
      this.pointers.set(e.pointerId, {x: e.clientX, y: e.clientY});
      if (this.pointers.size === 1) this.press = {x: e.clientX, y: e.clientY, moved: false, wasActive: g.touched === this, type: e.pointerType};
      g.touched = this;
      s.setPointerCapture(e.pointerId);
    });
    s.addEventListener("pointermove", (e) => {
      const last = this.pointers.get(e.pointerId);
      if (!last) return;
      if (this.pointers.size === 2) {
        const [a, b] = [...this.pointers.values()], before = Math.hypot(a.x - b.x, a.y - b.y);
        this.pointers.set(e.pointerId, {x: e.clientX, y: e.clientY});
        const [c, d] = [...this.pointers.values()], after = Math.hypot(c.x - d.x, c.y - d.y);
        this.panBy((c.x + d.x - a.x - b.x) / 2, (c.y + d.y - a.y - b.y) / 2);
        if (before > 0) this.zoomAt(after / before, (c.x + d.x) / 2, (c.y + d.y) / 2);
        this.press.moved = true;
        return;
      }
      const dx = e.clientX - last.x, dy = e.clientY - last.y;
      if (!this.press.moved && Math.hypot(e.clientX - this.press.x, e.clientY - this.press.y) < 5) return;
      this.press.moved = true;
      this.pointers.set(e.pointerId, {x: e.clientX, y: e.clientY});
      if (e.shiftKey) g.contrastBy(this, dx / 300, -dy / 300);
      else if (this.view.zoom > 1.001) this.panBy(dx, dy);
    });
    const end = (e) => {
      if (!this.pointers.delete(e.pointerId) || this.pointers.size || e.type === "pointercancel") return;
      const dx = e.clientX - this.press.x, dy = e.clientY - this.press.y;
      if (this.view.zoom <= 1.001) {
        if (this.press.type === "touch" && Math.abs(dx) > 50 && Math.abs(dx) > 2 * Math.abs(dy)) g.step(dx < 0 ? 1 : -1);
      } else if (!this.press.moved && this.press.wasActive) {   // a click centres: panning without dragging
        const box = s.getBoundingClientRect(), to = this.toImage(e.clientX - box.left, e.clientY - box.top);
        Object.assign(this.view, to);
        g.changed(this, "pan");
      }
    };
    s.addEventListener("pointerup", end);
    s.addEventListener("pointercancel", end);
    s.addEventListener("dblclick", () => g.solo());
    s.addEventListener("wheel", (e) => {   // with Ctrl (and pinch on a touch pad): zoom; else through the images, once the pane is in use
      if (e.ctrlKey || e.metaKey) { e.preventDefault(); this.zoomAt(Math.exp(-e.deltaY / 200), e.clientX, e.clientY); return; }
      if (g.active !== this || !this.node.contains(document.activeElement)) return;
      e.preventDefault();
      g.wheel = (g.wheel || 0) + e.deltaY;
      if (Math.abs(g.wheel) >= 60) { g.step(Math.sign(g.wheel)); g.wheel = 0; }
    }, {passive: false});
  }
}

export class ReadingGrid extends EventTarget {
  constructor(element, {images, layout = 4, link = "off", marked = [], filmstrip = true, tools = true, name = "Images"} = {}) {
    super();
    this.element = element;
    this.images = images;
    this.views = images.map(neutral);
    this.marked = new Set(marked);
    this.seen = new Set();
    this.link = link;
    this.title = name;
    element.classList.add("reading-grid", "film");
    element.setAttribute("role", "region");
    element.setAttribute("aria-label", name);
    this.status = make("p", {class: "grid-status", role: "status"});
    this.field = make("div", {class: "grid-panes"});
    this.panes = Array.from({length: 9}, (_, n) => new Pane(this, n));
    this.commands = this.makeCommands();
    if (tools) element.append(this.makeTools());
    this.caption = make("p", {class: "grid-caption"});
    element.append(this.field, this.caption);
    if (filmstrip && images.length > 1) { this.strip = this.makeStrip(); element.append(this.strip); }
    element.append(this.status);
    const room = element.clientWidth && element.clientWidth < 480 ? 4 : 9;   // on a phone no more than four panes to begin with
    this.setLayout(Math.min(layout, room, LAYOUTS.find((n) => n >= images.length) ?? 9));
  }

  name(index) {
    const image = this.images[index];
    return `Image ${index + 1} of ${this.images.length}` + (image.group ? `, ${image.group}` : "") + (image.caption ? `: ${image.caption}` : "");
  }

  get shown() { return this.panes.slice(0, this.layout); }

  setLayout(count, start = null) {
    const anchor = start ?? this.active?.index ?? 0;
    this.layout = count;
    this.field.dataset.layout = count;
    this.field.style.setProperty("--columns", COLUMNS[count]);
    this.field.replaceChildren(...this.shown.map((p) => p.node));
    const free = this.shown.filter((p) => !p.pinned);
    const from = count >= this.images.length ? 0 : Math.min(anchor, Math.max(0, this.images.length - free.length));
    this.fill(from);
    const at = this.shown.find((p) => p.index === anchor && !p.pinned) ?? free[0] ?? this.panes[0];
    this.activate(at, this.element.contains(document.activeElement));
    if (this.layoutPick) this.layoutPick.value = String(count);
    this.changed(null, "layout");
  }

  fill(from) {   // free panes show consecutive images; pinned ones keep theirs
    this.from = from;
    let next = from;
    for (const pane of this.shown) {
      if (pane.pinned) { pane.show(pane.index); continue; }
      pane.show(next < this.images.length ? next : -1);
      next += 1;
    }
    (window.requestIdleCallback ?? setTimeout)(() => this.prefetch());
  }

  activate(pane, focus = false) {
    if (pane.index < 0) return;
    this.active = pane;
    for (const p of this.panes) {
      p.node.classList.toggle("is-active", p === pane);
      p.node.tabIndex = p === pane ? 0 : -1;
    }
    if (focus && document.activeElement !== pane.node) pane.node.focus({preventScroll: true});
    this.report("view");
  }

  step(by) {   // in a grid: the next pane, then the next page; in one pane or beside a pinned one: the next image
    this.stopBlink();
    const free = this.shown.filter((p) => !p.pinned && p.index >= 0);
    if (!free.length) return this.say("All panes are pinned");
    const at = free.indexOf(this.active), go = at + by;
    if (at >= 0 && go >= 0 && go < free.length) return this.activate(free[go], this.inGrid);
    const pane = at < 0 ? free[0] : this.active;
    const target = at < 0 ? pane.index : pane.index + by;
    if (target < 0 || target >= this.images.length) return this.say(by > 0 ? "Last image" : "First image");
    this.jump(target);
  }

  jump(index) {
    if (index < 0 || index >= this.images.length) return;
    const there = this.shown.find((p) => p.index === index);
    if (there) return this.activate(there, this.inGrid);
    const size = this.shown.filter((p) => !p.pinned).length || 1;
    if (!this.shown.some((p) => !p.pinned)) this.togglePin(this.active);
    this.fill(size === 1 ? index : Math.floor(index / size) * size);
    this.activate(this.shown.find((p) => p.index === index && !p.pinned) ?? this.active, this.inGrid);
  }

  page(by) {
    const size = this.shown.filter((p) => !p.pinned).length;
    const from = clamp(this.from + by * size, 0, Math.max(0, this.images.length - 1));
    if (from === this.from || (by > 0 && this.from + size >= this.images.length)) return this.say(by > 0 ? "Last page" : "First page");
    this.fill(from);
    this.activate(this.shown.find((p) => !p.pinned && p.index >= 0), this.inGrid);
  }

  get inGrid() { return this.element.contains(document.activeElement); }

  changed(pane, what) {   // redraw, and hand zoom and place to the linked panes
    if (!pane) { this.refresh(); return; }
    pane.draw();
    if ((what === "zoom" || what === "pan") && this.link !== "off") {
      for (const other of this.shown) {
        if (other === pane || other.index < 0) continue;
        if (this.link === "group" && other.image.group !== pane.image.group) continue;
        Object.assign(other.view, {zoom: pane.view.zoom, x: pane.view.x, y: pane.view.y});
        other.draw();
      }
    }
    this.report(what);
  }

  contrastBy(pane, contrast, bright) {
    const v = pane.view;
    v.contrast = Math.round(clamp(v.contrast + contrast, 0.2, 4) * 100) / 100;
    v.bright = Math.round(clamp(v.bright + bright, 0.2, 4) * 100) / 100;
    this.changed(pane, "contrast");
  }

  togglePin(pane) {
    pane.pinned = !pane.pinned;
    pane.write();
    this.refresh();
    this.say(pane.pinned ? `Image ${pane.index + 1} pinned` : `Image ${pane.index + 1} free`);
    this.report("pin");
  }

  compare() {   // pin this image left, move through the others right; again: back
    if (this.before) {
      for (const p of this.panes) p.pinned = false;
      const back = this.before; this.before = null;
      return this.setLayout(back);
    }
    const index = this.active.index;
    this.before = this.layout;
    for (const p of this.panes) p.pinned = false;
    this.panes[0].show(index);
    this.panes[0].pinned = true;
    this.setLayout(2, index + 1 < this.images.length ? index + 1 : index - 1);
    this.activate(this.panes[1], true);
    this.say(`Comparing with image ${index + 1}; arrows move the other pane`);
  }

  blink() {
    if (this.blinking) return this.stopBlink();
    const pinned = this.shown.find((p) => p.pinned && p !== this.active);
    if (!pinned) return this.say("Pin an image first, then blink");
    this.blinkBack = this.active.index;
    this.blinking = this.active;
    this.active.show(pinned.index);
  }

  stopBlink() {
    const pane = this.blinking;
    if (!pane) return;
    this.blinking = null;
    pane.show(this.blinkBack);
  }

  solo() {
    if (this.layout > 1) { this.wide = this.layout; this.setLayout(1, this.active.index); }
    else this.setLayout(this.wide ?? 4, Math.floor(this.active.index / (this.wide ?? 4)) * (this.wide ?? 4));
  }

  mark() {   // "this image is the one I rely on"
    const id = this.active.image.id;
    if (!this.marked.delete(id)) this.marked.add(id);
    this.refresh();
    this.say(this.marked.has(id) ? `Image ${this.active.index + 1} marked as relied on` : `Mark removed from image ${this.active.index + 1}`);
    this.report("mark");
  }

  setMarked(ids) { this.marked = new Set(ids); this.refresh(); }

  makeCommands() {
    const view = (change, what) => () => { change(this.active.view, this.active); this.changed(this.active, what); };
    const pan = (dx, dy) => () => this.active.panBy(dx * 60, dy * 60);
    const zoom = (factor) => () => {
      const box = this.active.stage.getBoundingClientRect();
      this.active.zoomAt(factor, box.left + box.width / 2, box.top + box.height / 2);
    };
    return {
      next: () => this.step(1), previous: () => this.step(-1),
      nextPage: () => this.page(1), previousPage: () => this.page(-1),
      nextPane: () => { const s = this.shown.filter((p) => p.index >= 0); this.activate(s[(s.indexOf(this.active) + 1) % s.length], true); },
      layout: () => this.setLayout(LAYOUTS[(LAYOUTS.indexOf(this.layout) + 1) % LAYOUTS.length]),
      solo: () => this.solo(), compare: () => this.compare(), blink: () => this.blink(),
      pin: () => this.togglePin(this.active), mark: () => this.mark(),
      link: () => { const grouped = this.images.some((i) => i.group); this.setLink({off: "all", all: grouped ? "group" : "off", group: "off"}[this.link]); },
      zoomIn: zoom(1.25), zoomOut: zoom(0.8),
      fit: view((v) => Object.assign(v, {zoom: 1, x: 0.5, y: 0.5}), "zoom"),
      actual: view((v, p) => { v.zoom = clamp(v.zoom / p.scale, 1, MAX_ZOOM); }, "zoom"),
      reset: view((v) => Object.assign(v, neutral()), "zoom"),
      panLeft: pan(1, 0), panRight: pan(-1, 0), panUp: pan(0, 1), panDown: pan(0, -1),
      invert: view((v) => { v.invert = !v.invert; }, "contrast"),
      turn: view((v) => { v.turn = (v.turn + 90) % 360; }, "turn"),
      mirror: view((v) => { v.mirror = !v.mirror; }, "turn"),
      contrastUp: () => this.contrastBy(this.active, 0.1, 0), contrastDown: () => this.contrastBy(this.active, -0.1, 0),
      brighter: () => this.contrastBy(this.active, 0, 0.1), darker: () => this.contrastBy(this.active, 0, -0.1),
      jump: (n) => this.jump(n - 1),
    };
  }

  /** After the reveal: what was withheld of the images (modality, caption). Before it, the page does not have it. */
  describe(list) {
    list.forEach((more, n) => Object.assign(this.images[n], more));
    if (this.strip) { const strip = this.makeStrip(); this.strip.replaceWith(strip); this.strip = strip; }
    if (this.linkPick && !this.linkPick.querySelector("[value=group]")) this.linkPick.append(make("option", {value: "group"}, "same modality"));
    this.refresh();
  }

  setLink(link) {
    this.link = link;
    if (this.linkPick) this.linkPick.value = link;
    if (link !== "off") this.changed(this.active, "zoom");
    this.say({off: "Zoom and pan: each image separately", all: "Zoom and pan: all panes linked", group: "Zoom and pan: linked within a modality"}[link]);
  }

  makeTools() {
    const c = this.commands;
    const button = (label, name, run, hint) => make("button", {type: "button", class: "tool", "aria-label": name, title: hint ? `${name} (${hint})` : name, onclick: run}, label);
    this.layoutPick = make("select", {"aria-label": "Layout", onchange: (e) => this.setLayout(Number(e.target.value))},
      ...LAYOUTS.map((n) => make("option", {value: String(n)}, `${COLUMNS[n]} × ${n / COLUMNS[n]}`)));
    this.linkPick = make("select", {"aria-label": "Link zoom and pan", onchange: (e) => this.setLink(e.target.value)},
      make("option", {value: "off"}, "separately"), make("option", {value: "all"}, "all linked"),
      this.images.some((i) => i.group) && make("option", {value: "group"}, "same modality"));
    this.linkPick.value = this.link;
    const range = (key, label) => this[key + "Range"] = make("input", {type: "range", min: "0.2", max: "4", step: "0.05", value: "1", "aria-label": label,
      oninput: (e) => { this.active.view[key] = Number(e.target.value); this.changed(this.active, "contrast"); }});
    this.invertButton = button("Invert", "Invert", c.invert, "I");
    return make("div", {class: "grid-tools", role: "toolbar", "aria-label": "Image tools"},
      make("label", {class: "tool-field"}, make("span", {}, "Layout"), this.layoutPick),
      make("label", {class: "tool-field"}, make("span", {}, "Link"), this.linkPick),
      make("span", {class: "tool-set"}, button("−", "Zoom out", c.zoomOut, "−"), button("+", "Zoom in", c.zoomIn, "+")),
      make("span", {class: "tool-set"}, this.invertButton, button("Compare", "Compare with pinned image", c.compare, "C")),
      make("details", {class: "tool-more"}, make("summary", {class: "tool"}, "Display"),
        make("div", {class: "tool-menu"},
          make("label", {}, "Contrast", range("contrast", "Display contrast")),
          make("label", {}, "Brightness", range("bright", "Display brightness")),
          make("span", {class: "tool-set"}, button("1:1", "1:1, image pixels", c.actual, "O"), button("Turn", "Turn by 90 degrees", c.turn, "R"), button("Mirror", "Mirror left to right", c.mirror), button("Blink", "Blink with the pinned image", c.blink, "Z")),
          make("p", {class: "tool-note"}, "8-bit teaching images: display contrast, not a DICOM window. No scale, no ruler."))),
      button("Reset", "Fit and reset this image", c.reset, "0"));
  }

  makeStrip() {
    this.thumbs = this.images.map((image, n) => make("button", {type: "button", class: "thumb", tabIndex: -1, onclick: () => this.jump(n)},
      make("img", {src: image.thumb ?? image.sources[0].src, alt: "", loading: "lazy", decoding: "async", width: 56, height: 56}),
      make("span", {class: "thumb-number"}, String(n + 1))));
    const groups = new Map();
    this.images.forEach((image, n) => { const g = image.group ?? ""; if (!groups.has(g)) groups.set(g, []); groups.get(g).push(n); });
    const strip = make("div", {class: "strip", role: "toolbar", "aria-label": "All images"},
      ...[...groups].map(([g, list]) => make("div", {class: "strip-group", role: "group", "aria-label": g || "Images in the order of the case"},
        g && make("span", {class: "strip-name", "aria-hidden": "true"}, g), make("div", {class: "strip-thumbs"}, ...list.map((n) => this.thumbs[n])))));
    strip.addEventListener("keydown", (e) => {
      const order = [...groups.values()].flat(), at = order.indexOf(this.thumbs.indexOf(document.activeElement));
      const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: order.length - 1}[e.key];
      if (to === undefined || at < 0 || e.shiftKey) return;
      e.preventDefault();
      e.stopPropagation();
      this.thumbs[order[clamp(to, 0, order.length - 1)]].focus();
    });
    return strip;
  }

  refresh() {
    for (const pane of this.shown) if (pane.index >= 0) pane.write();
    const shown = new Map(this.shown.filter((p) => p.index >= 0).map((p) => [p.index, p]));
    for (const index of shown.keys()) this.seen.add(index);
    this.thumbs?.forEach((thumb, n) => {
      const pane = shown.get(n), current = this.active?.index === n;
      thumb.classList.toggle("is-shown", Boolean(pane));
      thumb.classList.toggle("is-marked", this.marked.has(this.images[n].id));
      thumb.classList.toggle("is-seen", this.seen.has(n));
      thumb.tabIndex = current ? 0 : -1;
      if (current) thumb.setAttribute("aria-current", "true"); else thumb.removeAttribute("aria-current");
      thumb.setAttribute("aria-label", this.name(n) + (pane ? `, in pane ${pane.number + 1}` : "") +
        (this.seen.has(n) ? "" : ", not viewed yet") + (this.marked.has(this.images[n].id) ? ", relied on" : ""));
      if (current) { const box = thumb.parentElement.parentElement.parentElement; const left = thumb.offsetLeft - box.offsetLeft;
        if (left < box.scrollLeft || left + thumb.offsetWidth > box.scrollLeft + box.clientWidth) box.scrollLeft = left - box.clientWidth / 2; }
    });
    this.caption.textContent = this.active?.image.caption ? `${this.active.index + 1}. ${this.active.image.caption}` : "";
    if (this.active && this.contrastRange) {
      this.contrastRange.value = this.active.view.contrast;
      this.brightRange.value = this.active.view.bright;
      this.invertButton.setAttribute("aria-pressed", String(this.active.view.invert));
    }
  }

  prefetch() {   // two on either side of what is shown
    const last = Math.max(...this.shown.map((p) => p.index)), first = this.from ?? 0;
    for (const n of [last + 1, last + 2, first - 1, first - 2]) if (this.images[n]) new Image().src = this.images[n].sources[0].src;
  }

  report(what) {
    if (what === "zoom" || what === "pan" || what === "contrast") {   // many a second: one write a frame
      this.frame ??= requestAnimationFrame(() => { this.frame = null; this.refresh(); });
    } else this.refresh();
    if (!this.active) return;
    this.dispatchEvent(new CustomEvent("view", {detail: {what, image: this.active.image.id, index: this.active.index, at: performance.now()}}));
    if (what === "view") this.say(this.name(this.active.index));
  }

  say(text) { this.status.textContent = text; }
}
