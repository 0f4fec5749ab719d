// Reading room, one case: own diagnosis → reveal → the texts, unit by unit → submit. What is withheld is asked for only
// after the diagnosis is committed, and the server does not give it out before.
import {ReadingGrid, imagesOf, make} from "./grid.js";
import {Keys, imageKeys} from "./keys.js";
import {Saver} from "./saver.js";

const IDLE_MS = 60_000;
const HEARTBEAT_MS = 120_000;
// How each column is asked for: its legend, the key and words of each choice, and the mark a choice leaves in the text.
const ASKED = {
  factual: {legend: "Is it supported?", columns: "five", choices: {supported: ["1", "Supported", "good", "✓"], contradicted: ["2", "Contradicted", "bad", "✗"], "not described": ["x", "Not described", "bad", "∅"], unverifiable: ["3", "Unverifiable", "", "?"], unsure: ["u", "Unsure", "", "~"]}},
  label: {legend: "Is the sentence right?", columns: "five", choices: {correct: ["1", "Correct", "good", "✓"], incorrect: ["2", "Incorrect", "bad", "✗"], "not described": ["x", "Not described", "bad", "∅"], unverifiable: ["3", "Unverifiable", "", "?"], unsure: ["u", "Unsure", "", "~"]}},
  preferred: {legend: "Which would teach a trainee better?", columns: "four", choices: {first: ["1", "The first"], second: ["2", "The second"], tie: ["3", "No difference"], unsure: ["u", "Unsure"]}},
  weight: {legend: "Weight", hint: "how much depends on it", columns: "four", choices: {decisive: ["q", "Decisive"], contributory: ["w", "Contributory"], incidental: ["e", "Incidental"], unsure: ["", "Unsure"]}},
  error_types: {legend: "Kind of error", hint: "at least one", multi: true, columns: "four", tone: "bad", choices: {image_understanding: ["4", "Image misread"], reasoning: ["5", "Does not follow"], clinical_scenario: ["6", "Patient’s story"], medical_knowledge: ["7", "Medical knowledge"]}},
  severity: {legend: "Consequence for the patient", columns: "five", choices: {none: ["a", "None"], minor: ["s", "Minor"], significant: ["d", "Significant"], dangerous: ["f", "Dangerous"], unsure: ["", "Unsure"]}},
  correction: {legend: "Correction", hint: "optional", words: true, key: "t"},
  finding: {legend: "In the text", columns: "five", choices: {mentioned: ["1", "Mentioned", "good", "✓"], hedged: ["4", "Hedged", "", "~"], missed: ["2", "Missed", "bad", "✗"], contradicted: ["3", "Contradicted", "bad", "✗"], unsure: ["u", "Unsure", "", "~"]}},
  score: {legend: "Score", columns: "three", choices: {0: ["0", ""], 1: ["1", ""], 2: ["2", ""]}},
  zero: {legend: "Why 0?", columns: "three", choices: {absent: ["a", "Absent"], wrong: ["w", "Wrong", "bad"]}},
};
const DUE = {error_types: (cells) => cells.factual === "contradicted", severity: (cells) => cells.factual === "contradicted", correction: (cells) => cells.factual === "contradicted", zero: (cells) => cells.score === "0"};
const OPTIONAL = new Set(["correction"]);
const isDue = (name, cells) => DUE[name]?.(cells) ?? true;
const isMissing = (name, cells) => !OPTIONAL.has(name) && isDue(name, cells) && !cells[name] && !(name === "weight" && cells.factual === "unsure");

const base = location.pathname.replace(/\/$/, "");
const place = document.getElementById("grid"), work = document.getElementById("work"), saveLine = document.getElementById("save");
const page = await (await fetch(`${base}/state`)).json();
const images = place ? imagesOf(place) : [];
let grid = null;
if (images.length) {
  place.replaceChildren();
  place.removeAttribute("tabindex");
  place.classList.remove("film-page");
  grid = new ReadingGrid(place, {images, layout: images.length > 6 ? 9 : images.length > 4 ? 6 : images.length > 2 ? 4 : images.length, name: "Images of the case"});
}

const texts = page.reveal?.texts ?? [], added = page.reveal?.added ?? null;
const items = [...texts.flatMap((text) => text.items), ...(added ? [added] : [])];
const cells = Object.fromEntries(items.map((item) => [item.code, {...item.cells}]));
const screens = page.reveal ? [{stage: "Reveal", draw: drawReveal}, ...texts.flatMap(screensOf), {stage: "Submit", draw: drawEnd}] : [{stage: "Read", draw: drawCase}];
const stages = [...new Set(["Read", "Reveal", ...screens.map((screen) => screen.stage), "Submit"])];
const state = {at: 0, row: 0, own: {}, anchors: false, expert: false, warned: false, seconds: {}, done: false};

function screensOf(text) {
  if (text.what === "omissions") return [{stage: text.title, text, draw: drawList}];
  const single = text.items.filter((item) => item.form !== "education"), scored = text.items.filter((item) => item.form === "education");
  const found = single.map((item, number) => ({stage: text.title, text, item, number, count: single.length, draw: drawItem}));
  return scored.length ? [...found, {stage: "Scores", text, items: scored, draw: drawScores}] : found;
}

// ---- Time: only while the page is seen and the reader does something ----------------------------------------------
let active = Date.now();
for (const kind of ["pointermove", "pointerdown", "keydown", "wheel"]) addEventListener(kind, () => { active = Date.now(); }, {passive: true});
const clockOf = () => screens[state.at]?.item?.code ?? screens[state.at]?.items?.[0].code ?? (screens[state.at]?.draw === drawList ? screens[state.at].text.items[0].code : "case");
setInterval(() => { if (document.visibilityState === "visible" && Date.now() - active < IDLE_MS) { const name = clockOf(); state.seconds[name] = (state.seconds[name] ?? 0) + 1; } }, 1000);
const takeSeconds = (name) => { const spent = state.seconds[name] ?? 0; state.seconds[name] = 0; return spent; };

// ---- Saving --------------------------------------------------------------------------------------------------------
async function send(change) {
  const answer = await fetch(`${base}/marks`, {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(change)});
  if (![200, 409, 422].includes(answer.status)) throw new Error(String(answer.status));
  return {status: answer.status, ...(await answer.json())};
}
const saver = new Saver(`medthink.room.${page.study}.${page.code}`, send, Object.fromEntries(items.map((item) => [item.code, item.version])));
for (const [code, kept] of Object.entries(saver.waiting)) if (cells[code]) cells[code] = {...kept};
saver.addEventListener("state", ({detail: {state: now, waiting, refusal}}) => {
  saveLine.dataset.state = now;
  saveLine.textContent = {saved: "Saved", saving: "Saving", waiting: refusal ? `Not saved: ${refusal}` : `${waiting} stored in this browser, sent when online`}[now];
});
saver.addEventListener("taken", ({detail: {item, cells: theirs}}) => { cells[item] = {...theirs}; render(); });
saver.settle = (change, answer) => new Promise((done) => {   // 409: both are shown, the reader chooses, both stay in the log
  const words = (value) => Object.values(value ?? {}).filter(Boolean).join(", ") || "nothing";
  const choose = (choice) => () => { box.close(); box.remove(); done(choice); };
  const box = make("dialog", {"aria-labelledby": "two"}, make("div", {class: "dialog-body"}, make("h2", {id: "two"}, "Changed on another device"),
    make("p", {}, "This unit was marked elsewhere after you opened it. Both stay in the log."),
    make("dl", {class: "facts"}, make("dt", {}, "Here"), make("dd", {}, words(change.cells)), make("dt", {}, `There, ${answer.saved_at.slice(11, 16)}`), make("dd", {}, words(answer.cells)))),
  make("div", {class: "dialog-end"}, make("button", {type: "button", class: "button", onclick: choose("theirs")}, "Use the other"), make("button", {type: "button", class: "button primary", onclick: choose("mine")}, "Keep this one")));
  box.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(box);
  box.showModal();
});
if (saver.queue.length) saver.flush();

function put(item, name, value) {
  const own = cells[item.code];
  if (value) own[name] = value; else delete own[name];
  for (const field of item.fields) if (!isDue(field.name, own)) delete own[field.name];   // what is no longer due is not kept behind the reader's back
  state.warned = false;
  saver.save(item.code, {...own}, takeSeconds(clockOf()));
}

// ---- Parts of the page --------------------------------------------------------------------------------------------
const button = (label, key, run, kind = "") => make("button", {type: "button", class: `button ${kind}`, onclick: run}, label, key && make("kbd", {"aria-hidden": "true"}, key));
const group = (legend, hint, ...rest) => make("fieldset", {class: "choice"}, make("legend", {}, legend, hint && make("span", {class: "hint"}, ` · ${hint}`)), ...rest);
const inline = (text) => text.split(/(\*\*.+?\*\*|\*.+?\*)/).map((part) => (part.startsWith("**") ? make("b", {}, part.slice(2, -2)) : part.length > 2 && part.startsWith("*") ? make("i", {}, part.slice(1, -1)) : part));
function rubric(text) {   // the rubric's page: tables of labels, lists and paragraphs
  const lines = text.split("\n").filter((line) => line.trim() && !/^\|[-| ]+\|$|^\| *label/.test(line)), found = [];
  for (const line of lines) {
    const [kind, ...pieces] = line.startsWith("|") ? ["dl", ...line.split("|").slice(1, -1)] : /^(-|\d+\.) /.test(line) ? ["ul", line.replace(/^(-|\d+\.) /, "")] : ["p", line];
    if (kind === "p") { found.push(make("p", {}, ...inline(line))); continue; }
    if (found.at(-1)?.localName !== kind) found.push(make(kind, {class: kind === "ul" ? "plain" : null}));
    found.at(-1).append(...(kind === "ul" ? [make("li", {}, ...inline(pieces[0]))] : [make("dt", {}, ...inline(pieces[0].trim())), make("dd", {}, ...inline(pieces[1].trim()))]));
  }
  return found;
}
const words = (text) => text.split(/\n\n+/).filter((part) => part.trim()).map((part) => make("p", {class: "prewrap"}, part));

function fieldset(item, field, {name = field.name, keys = true, means = {}} = {}) {
  const asked = ASKED[field.name] ?? {legend: field.name, choices: Object.fromEntries(field.choices.map((choice) => [choice, ["", choice]]))}, own = cells[item.code];
  if (asked.words || !field.choices.length && !asked.multi) return make("label", {class: "field"}, make("span", {class: "label"}, asked.legend, " ", asked.key && make("kbd", {"aria-hidden": "true"}, asked.key.toUpperCase()), asked.hint && make("span", {class: "hint"}, ` ${asked.hint}`)),
    make("textarea", {class: "textarea", rows: 2, "data-words": name, value: own[field.name] ?? "", onchange: (event) => put(item, field.name, event.target.value.trim())}));
  const chosen = asked.multi ? (own[field.name] ?? "").split(";").filter(Boolean) : own[field.name];
  const known = field.choices.length ? field.choices.filter((choice) => asked.choices[choice]) : Object.keys(asked.choices);
  const pick = (choice) => {
    if (!asked.multi) put(item, field.name, choice);
    else { const set = new Set(chosen); if (!set.delete(choice)) set.add(choice); put(item, field.name, known.filter((one) => set.has(one)).join(";")); }
    render();
  };
  return group(asked.legend, asked.hint ?? "", make("div", {class: `picks ${asked.columns}`}, ...known.map((choice) => { const [key, label, tone = asked.tone ?? ""] = asked.choices[choice]; return make("label", {class: `pick ${tone}`},
    make("input", {type: asked.multi ? "checkbox" : "radio", name: `${item.code}:${field.name}`, value: choice, checked: asked.multi ? chosen.includes(choice) : chosen === choice, "data-field": keys ? field.name : null, onchange: () => pick(choice)}),
    keys && key && make("kbd", {"aria-hidden": "true"}, key.toUpperCase()), make("span", {}, !keys && !label ? key : "", keys && !label && make("span", {class: "unseen"}, key), label, means[choice] && make("small", {}, ...inline(means[choice])))); })));
}

const markOf = (item) => { const field = item.fields[0], choice = cells[item.code][field.name]; return choice && {choice, glyph: ASKED[field.name]?.choices?.[choice]?.[3] ?? "•", label: ASKED[field.name]?.choices?.[choice]?.[1] ?? choice}; };

function wholeText(text, here) {   // every part as written, each unit a link to its place, the one in hand marked
  const shown = Object.entries(text.parts).map(([name, whole]) => {
    const own = text.items.filter((item) => item.part === name && item.start >= 0), parts = [];
    let at = 0;
    for (const item of own) {
      const mark = markOf(item), is = item === here, go = screens.findIndex((screen) => screen.item === item);
      if (item.start > at) parts.push(whole.slice(at, item.start));
      parts.push(make("a", {href: `#${go}`, class: `step ${mark ? `v-${{correct: "supported", incorrect: "contradicted"}[mark.choice] ?? mark.choice.replace(" ", "-")}` : ""}`, "aria-current": is ? "step" : null, tabIndex: is ? 0 : -1, "data-enter-passes": true,
        onclick: (event) => { event.preventDefault(); goTo(go); }, "aria-label": `${mark ? mark.label : "not judged"}: ${whole.slice(item.start, item.end)}`}, mark && make("span", {class: "glyph", "aria-hidden": "true"}, mark.glyph), whole.slice(item.start, item.end)));
      at = item.end;
    }
    parts.push(whole.slice(at));
    return make("section", {}, Object.keys(text.parts).length > 1 && make("h3", {}, name), make("p", {class: "prewrap"}, ...parts));
  });
  return make("div", {class: "rationale", role: "group", "aria-label": "The whole text"}, text.answer && make("p", {class: "small soft"}, `It answers ${text.answer}`), ...shown);
}

const expert = () => { const {diagnosis, findings, discussion} = page.reveal; return make("div", {class: "expert"}, make("h3", {}, "Diagnosis"), make("p", {}, diagnosis), findings && make("h3", {}, "Findings"), ...(findings ? words(findings) : []), discussion && make("details", {}, make("summary", {}, "Discussion"), ...words(discussion)),
  make("p", {class: "small soft"}, "Captions and modalities are shown with the images.")); };
const aside = (text) => [state.anchors && make("div", {class: "anchors", tabIndex: 0, role: "region", "aria-label": "What the words mean"}, ...text.anchors.map(([name, meaning]) => make("details", {open: true}, make("summary", {}, name), ...rubric(meaning)))),
  make("details", {open: state.expert, ontoggle: (event) => { state.expert = event.target.open; }}, make("summary", {}, "Expert material"), expert())];
const readings = (item) => item.readings.length > 0 && make("div", {class: "side"}, ...item.readings.map((one, number) => make("div", {class: "reader-col"}, make("h3", {}, `Reading ${number + 1}`), make("dl", {class: "facts"}, ...Object.entries(one).flatMap(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, value.replaceAll("_", " ").replaceAll(";", ", "))])))));

// ---- Screens -------------------------------------------------------------------------------------------------------
function drawCase() {
  const own = state.own, pick = (name, list) => make("div", {class: `picks ${name === "option" ? "list" : "four"}`}, ...list.map(([value, key, label]) => make("label", {class: "pick"},
    make("input", {type: "radio", name, value, checked: own[name] === value, onchange: () => { own[name] = value; }}), make("kbd", {"aria-hidden": "true"}, key), make("span", {}, label))));
  return [[make("h2", {}, "What do you see?"), make("div", {class: "history"}, ...words(page.history)),
    group("Your diagnosis", "before anything else is shown", pick("option", page.options.map(([letter, text], number) => [letter, String(number + 1), `${letter} · ${text}`]))),
    group("How sure are you?", "", pick("confidence", page.sureness.map(([value, label]) => [String(value), String(value + 5), label])))],
  [button("Commit", "Enter", next, "primary"), make("span", {class: "small soft"}, "Cannot be changed afterwards.")]];
}

function drawReveal() {
  const {own, own_text: text, shown} = page.reveal, note = page.is_adjudication ? "Next: units that two readers judged differently. Their names are not shown." : texts.length ? "Next: a text about this case, in units. Its author, human or model, is not shown. Judge each unit on its own, not by whether the conclusion is right." : "That is all: your diagnosis is what counts.";
  return [[make("h2", {}, "Revealed"), make("p", {class: "small soft"}, `Your diagnosis, ${own} · ${text}, is recorded. The following is the expert’s.`), expert(), texts.length && shown < images.length && make("p", {class: "small soft"}, `The author was shown the first ${shown} of ${images.length} images.`), make("p", {class: "note plain"}, note)], [button(texts.length ? "Continue to the text" : "On", "Enter", next, "primary")]];
}

function drawItem({text, item, number, count}) {
  const own = cells[item.code], relied = (own.images ?? "").split(";").filter(Boolean);
  const isPiece = item.start >= 0;
  return [[make("h2", {class: "unseen"}, `${text.title}, ${number + 1} of ${count}`), wholeText(text, item), !isPiece && text.what !== "preference" && make("blockquote", {class: "quote"}, item.text), readings(item),
    ...item.fields.filter((field) => isDue(field.name, own)).map((field) => DUE[field.name] ? make("div", {class: "due"}, fieldset(item, field)) : fieldset(item, field)),
    grid && make("div", {class: "row small"}, make("span", {}, relied.length ? `Relied on image ${relied.join(", ")}` : "No image relied on"), button(relied.length ? "Change" : "Rely on this image", "M", markImage, "small"),
      isPiece && make("label", {class: "check"}, make("input", {type: "checkbox", "data-cut": "", checked: own.badly_cut === "yes", onchange: (event) => { put(item, "badly_cut", event.target.checked ? "yes" : ""); }}), "Badly cut ", make("kbd", {"aria-hidden": "true"}, "X"))),
    ...aside(text)],
  [button(number + 1 < count ? "Next" : "On", "Enter", next, "primary"), state.at > 0 && button("Back", "", back), make("span", {class: "small soft"}, `${number + 1} of ${count}`), button(state.anchors ? "Hide what the words mean" : "What the words mean", "H", anchors, "quiet")]];
}

function drawList({text}) {
  const rows = text.items.map((item, number) => make("div", {class: "score-row"}, make("p", {}, make("kbd", {"aria-hidden": "true"}, String(number + 1)), ` ${item.text} `, make("span", {class: "soft small"}, Object.keys(text.parts).length > 1 ? `in the ${item.part}` : "")), readings(item), fieldset(item, item.fields[0], {keys: false})));
  return [[make("h2", {}, "What was missed?"), make("p", {class: "small soft"}, "Decisive findings of this case. A key 1–9 marks one as missed, again as contradicted, then as hedged, then as mentioned; Enter marks the rest as mentioned."), ...rows,
    added && make("label", {class: "field"}, make("span", {class: "label"}, "A finding missing from the list ", make("kbd", {"aria-hidden": "true"}, "T")), make("textarea", {class: "textarea", rows: 2, "data-words": "added", value: cells[added.code].finding ?? "", onchange: (event) => put(added, "finding", event.target.value.trim())})), make("h3", {}, "The text"), wholeText(text, null), ...aside(text)],
  [button("On", "Enter", next, "primary"), button("Back", "", back), button(state.anchors ? "Hide what the words mean" : "What the words mean", "H", anchors, "quiet")]];
}

function drawScores({text, items: scored}) {
  const row = (item, number) => {
    const is = number === state.row, [score, zero] = item.fields, own = cells[item.code];
    return make("div", {class: "score-row", "aria-current": is ? "step" : null}, make("h3", {}, item.part), readings(item), fieldset(item, score, {keys: is, means: item.anchors}),
      isDue(zero.name, own) && make("div", {class: "due"}, fieldset(item, zero, {keys: is})));
  };
  return [[make("h2", {}, "What does it teach?"), make("p", {class: "small soft"}, "Five scores of the whole discussion. Take the highest whose condition is met; length and style earn nothing. Keys 0–2 score the row in hand and go on; for a 0, A or W says why; J and K move."),
    make("details", {}, make("summary", {}, "The discussion"), wholeText(text, null)), ...scored.map(row), ...aside(text)],
  [button("On", "Enter", next, "primary"), button("Back", "", back), button(state.anchors ? "Hide what the words mean" : "What the words mean", "H", anchors, "quiet")]];
}
function moveRow(step) {
  const {items: scored} = screens[state.at];
  state.row = Math.max(0, Math.min(scored.length - 1, state.row + step));
  render();
  work.querySelector(".score-row[aria-current]")?.scrollIntoView({block: "nearest"});
}
function score(name, choice) {
  const item = screens[state.at].items[state.row];
  if (name === "zero" && !isDue("zero", cells[item.code])) return;
  put(item, name, choice);
  moveRow(gapsOf(item).length ? 0 : 1);
}

const gapsOf = (item) => item.fields.map((field) => field.name).filter((name) => isMissing(name, cells[item.code]));
const allGaps = () => texts.flatMap((text) => text.items).map((item) => [item, gapsOf(item)]).filter(([, missing]) => missing.length);
const screenOf = (item) => screens.findIndex((screen) => screen.item === item || screen.items?.includes(item) || (screen.draw === drawList && screen.text.items.includes(item)));

function drawEnd() {
  if (state.done) return [[make("h2", {}, "Thank you"), make("p", {}, "Locked. The next case is ready.")], [make("a", {class: "button primary", href: base.slice(0, base.lastIndexOf("/")) + "?next", "data-next": ""}, "Next case"), make("a", {class: "button", href: base.slice(0, base.lastIndexOf("/"))}, "Pause here")]];
  const gaps = allGaps(), unseen = grid ? images.length - grid.seen.size : 0, count = texts.reduce((sum, text) => sum + text.items.length, 0);
  return [[make("h2", {}, gaps.length ? "Not yet complete" : "Complete"),
    gaps.length ? make("ul", {class: "gaps"}, ...gaps.map(([item, missing]) => make("li", {}, button("Go there", "", () => goTo(screenOf(item)), "small"), ` ${item.text.slice(0, 60)}: ${missing.map((name) => ASKED[name]?.legend ?? name).join(", ")}`))) : make("p", {}, count ? `All ${count} units are judged.` : "Your diagnosis is recorded."),
    unseen > 0 && make("p", {class: "note warn"}, `${unseen} images were not viewed.`),
    make("p", {class: "small soft"}, "After this the reading is locked. Your time on the case, without pauses, is stored with it.")],
  [!page.is_locked && button("Submit and lock", "Enter", next, "primary"), button("Back", "", back)]];
}

// ---- Moving on -----------------------------------------------------------------------------------------------------
function say(text) { document.getElementById("say").textContent = ""; requestAnimationFrame(() => { document.getElementById("say").textContent = text; }); const note = work.querySelector("[data-say]"); if (note) note.textContent = text; }

function render(isNew = false) {
  const screen = screens[state.at], [body, end] = screen.draw(screen), held = document.activeElement?.closest?.("#work") ? document.activeElement : null;
  const found = held?.name ? `[name="${held.name}"][value="${held.value}"]` : null;
  work.querySelector(".desk-body").replaceChildren(...body.filter(Boolean));
  work.querySelector(".desk-end").replaceChildren(...end.filter(Boolean), make("span", {class: "small warn-text", "data-say": ""}));
  const now = stages.indexOf(screen.stage);
  work.querySelector(".stages").replaceChildren(...stages.map((name, number) => make("li", {class: number < now || state.done ? "done" : "", "aria-current": number === now ? "step" : null}, name)));
  if (found && !isNew) work.querySelector(found)?.focus();
  else if (isNew) { (work.querySelector(".step[aria-current]") ?? work.querySelector("h2"))?.focus?.({preventScroll: true}); work.scrollTop = 0; }
  if (grid) grid.setMarked(screen.item ? (cells[screen.item.code].images ?? "").split(";").filter(Boolean) : []);
}

function keepTime() {   // what was spent on a unit after its last mark belongs to it too
  const name = clockOf();
  if (cells[name] && Object.keys(cells[name]).length && (state.seconds[name] ?? 0) >= 1) saver.save(name, {...cells[name]}, takeSeconds(name));
}
function goTo(at) { keepTime(); state.row = 0; state.at = Math.max(0, Math.min(screens.length - 1, at)); state.warned = false; history.replaceState(null, "", `#${state.at}`); render(true); }
function back() { if (state.at > 0) goTo(state.at - 1); }

async function next() {
  const screen = screens[state.at];
  if (screen.draw === drawCase) return commit();
  if (screen.draw === drawEnd) return state.done ? work.querySelector("[data-next]").click() : submit();
  if (screen.draw === drawList) for (const item of screen.text.items) if (!cells[item.code].finding) put(item, "finding", "mentioned");
  const gaps = (screen.item ? [screen.item] : screen.items ?? []).flatMap(gapsOf);
  if (gaps.length && !state.warned) { state.warned = true; return say(`Open: ${[...new Set(gaps)].map((name) => ASKED[name]?.legend ?? name).join(", ")}. Enter again leaves it open.`); }
  goTo(state.at + 1);
}

async function commit() {
  if (!state.own.option || !state.own.confidence) return say("Choose a diagnosis and how sure you are first.");
  const answer = await fetch(`${base}/commit`, {method: "POST", body: new URLSearchParams({...state.own, seconds: takeSeconds("case")})}).catch(() => null);
  if (answer?.ok) location.reload(); else say(answer ? "This could not be saved. Reload the page." : "No connection: commit when you are online again.");
}

async function submit() {
  if (allGaps().length) return say("Fill the gaps first.");
  await saver.flush();
  if (saver.queue.length) return say("Some marks have not been sent yet. Submit when you are online again.");
  const answer = await fetch(`${base}/submit`, {method: "POST", headers: {accept: "application/json"}}).catch(() => null);
  if (!answer) return say("No connection: submit when you are online again.");
  const told = await answer.json();
  if (!answer.ok || told.gaps.length) return say(told.problem ?? "Some marks did not reach the server. Load the page again.");
  state.done = true;
  render(true);
}

function markImage() {
  const screen = screens[state.at];
  if (!screen.item || !grid) return;
  const number = String(grid.active.index + 1), set = new Set((cells[screen.item.code].images ?? "").split(";").filter(Boolean));
  if (!set.delete(number)) set.add(number);
  put(screen.item, "images", [...set].sort((a, b) => a - b).join(";"));
  render();
  say(`Image ${number} ${set.has(number) ? "relied on" : "no longer relied on"}`);
}
function anchors() { state.anchors = !state.anchors; render(); if (state.anchors) work.querySelector(".anchors")?.scrollIntoView({block: "nearest"}); }
function cycle(number) {   // omissions: mentioned → missed → contradicted → hedged
  const screen = screens[state.at], item = screen.text.items[number - 1], order = ["missed", "contradicted", "hedged", "mentioned"];
  if (item) { put(item, "finding", order[(order.indexOf(cells[item.code].finding) + 1) % order.length]); render(); }
}

// ---- Keys ----------------------------------------------------------------------------------------------------------
const at = (draw) => () => screens[state.at].draw === draw;
const press = (selector) => work.querySelector(selector)?.click();
const fieldKeys = Object.entries(ASKED).filter(([name, asked]) => asked.choices && !["score", "zero"].includes(name)).flatMap(([name, asked]) => Object.entries(asked.choices).filter(([, [key]]) => key).map(([choice, [key, label]]) => ({id: `judge.${name}.${choice}`, keys: [key], label: `${asked.legend} ${label}`, when: () => at(drawItem)() && Boolean(work.querySelector(`[data-field="${name}"]`)), run: () => press(`[data-field="${name}"][value="${choice}"]`)})));
const keys = new Keys([
  {name: "Reading", keys: [
    {id: "own", keys: ["1", "2", "3", "4", "5"], label: "Your diagnosis, option A–E", when: at(drawCase), run: (event, key) => press(`.pick:nth-child(${key}) input[name=option]`)},
    {id: "sure", keys: ["6", "7", "8", "9"], label: "How sure", when: at(drawCase), run: (event, key) => press(`input[name=confidence][value="${key - 5}"]`)},
    {id: "missed", keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9"], label: "Finding 1–9: missed, contradicted, hedged, mentioned", when: at(drawList), run: (event, key) => cycle(Number(key))},
    {id: "score", keys: ["0", "1", "2"], label: "Score of the row in hand", when: at(drawScores), run: (event, key) => score("score", key)},
    {id: "zero.absent", keys: ["a"], label: "Why 0? Absent", when: at(drawScores), run: () => score("zero", "absent")},
    {id: "zero.wrong", keys: ["w"], label: "Why 0? Wrong", when: at(drawScores), run: () => score("zero", "wrong")},
    {id: "row.next", keys: ["j"], label: "Next score", when: at(drawScores), run: () => moveRow(1)},
    {id: "row.back", keys: ["k"], label: "Score before", when: at(drawScores), run: () => moveRow(-1)},
    {id: "forward", keys: ["Enter"], label: "Continue: commit, next unit, submit", run: next},
    {id: "back", keys: ["shift+Enter", "Backspace"], label: "Back", run: back}]},
  {name: "Judging a unit", keys: [...fieldKeys,
    {id: "mark", keys: ["m"], label: "Rely on the image in the active pane", when: at(drawItem), run: markImage},
    {id: "wording", keys: ["t"], label: "Free text (Esc leaves it)", when: () => Boolean(work.querySelector("[data-words]")), run: () => work.querySelector("[data-words]").focus()},
    {id: "cut", keys: ["x"], label: "Badly cut", when: at(drawItem), run: () => press("[data-cut]")},
    {id: "anchors", keys: ["h"], label: "What the words mean", when: () => Boolean(screens[state.at].text), run: anchors}]},
  ...(grid ? [{...imageKeys(grid, {digits: false}), keys: imageKeys(grid, {digits: false}).keys.map((one) => (one.id === "image.solo" ? {...one, keys: ["y"]} : one))}] : []),
]);
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && event.target.matches("textarea")) { event.target.dispatchEvent(new Event("change")); event.target.blur(); } });
const help = document.querySelector("[data-keys]");
help.hidden = false;
help.addEventListener("click", () => keys.help());

if (!page.is_locked) setInterval(async () => {
  const answer = await fetch(`${base}/hold`, {method: "POST"}).catch(() => null);
  if (answer?.status === 423) { saveLine.dataset.state = "waiting"; saveLine.textContent = (await answer.json()).problem; }
}, HEARTBEAT_MS);

const wanted = Number(location.hash.slice(1));
const firstOpen = () => { const gaps = allGaps(); return gaps.length && page.reveal && items.some((item) => Object.keys(item.cells).length) ? screenOf(gaps[0][0]) : 0; };
state.at = Number.isInteger(wanted) && location.hash ? Math.max(0, Math.min(wanted, screens.length - 1)) : firstOpen();
render(true);
document.documentElement.dataset.ready = "room";
