// Handing a file in: dropped or chosen, refused here when it is too large, sent with its progress shown. Without this
// script the form sends itself.
const form = document.querySelector("[data-upload]");

function words(bytes) { return bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`; }

if (form) {
  const input = form.querySelector("input[type=file]"), drop = form.querySelector("[data-drop]");
  const name = form.querySelector("[data-file-name]"), problem = form.querySelector("[data-upload-problem]");
  const box = form.querySelector("[data-upload-progress]"), bar = box.querySelector("progress"), said = box.querySelector("[data-upload-words]");
  const empty = name.textContent;

  const complain = (text) => { problem.textContent = text; problem.hidden = !text; };

  const look = () => {
    const file = input.files[0];
    name.textContent = file ? `${file.name}, ${words(file.size)}` : empty;
    const isLarge = file && file.size > Number(form.dataset.largest);
    complain(isLarge ? `The file has ${words(file.size)}; at most ${words(Number(form.dataset.largest))} are accepted.` : "");
    input.setCustomValidity(isLarge ? problem.textContent : "");
  };
  input.addEventListener("change", look);

  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  drop.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; look(); } });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const request = new XMLHttpRequest(), button = form.querySelector("button.primary");
    const stop = (text) => { box.hidden = true; button.disabled = false; complain(text); problem.scrollIntoView({block: "center"}); };
    button.disabled = true;
    box.hidden = false;
    request.upload.addEventListener("progress", (step) => {
      bar.value = step.lengthComputable ? 100 * step.loaded / step.total : 0;
      said.textContent = step.loaded < step.total ? `Sent ${words(step.loaded)} of ${words(step.total)}` : "Sent. Waiting for the server …";
    });
    request.addEventListener("load", () => {
      if (request.status < 400) { location.assign(request.responseURL); return; }
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      stop(page.querySelector("[role=alert]:not([hidden])")?.textContent ?? page.querySelector("h1")?.textContent ?? "Request failed.");
    });
    request.addEventListener("error", () => stop("The connection was lost. Nothing was received; try again."));
    request.open("POST", form.action);
    request.send(new FormData(form));
  });
}
