"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const answers = [...document.querySelectorAll(".answer")];
  const find = (id) => document.getElementById(id);
  const store = `evalrun-label-${data.id}`;
  let labels = {};  // place → true or false
  let at = 0;

  // What was said so far survives: a reload in the address, y, n or - per answer, and a closed window in the
  // browser's storage. Both, since a browser may keep no storage for a file, or lose it (Chromium now and then).
  try {
    const kept = JSON.parse(localStorage.getItem(store) || "{}");
    for (const [place, label] of Object.entries(kept)) {
      if (typeof label === "boolean" && answers[place]) labels[place] = label;
    }
  } catch { labels = {}; }
  const [owner, said = ""] = location.hash.slice(1).split("=");
  if (owner === store) {
    [...said].forEach((letter, place) => { if ("yn".includes(letter) && answers[place]) labels[place] = letter === "y"; });
  }
  const unread = answers.findIndex((_, place) => !(place in labels));
  at = unread < 0 ? answers.length : unread;

  function keep() {
    const said = answers.map((_, place) => ({ true: "y", false: "n" })[labels[place]] ?? "-").join("");
    try { history.replaceState(null, "", `#${store}=${said}`); } catch { /* the storage may do */ }
    try { localStorage.setItem(store, JSON.stringify(labels)); } catch { /* saving the file is enough */ }
  }

  function show() {
    const finished = at >= answers.length, count = Object.keys(labels).length;
    answers.forEach((answer, place) => { answer.hidden = place !== at; });
    find("finished").hidden = !finished;
    find("asked").hidden = finished;
    find("at").textContent = finished ? `${answers.length} shown` : `${at + 1} of ${answers.length}`;
    find("count").textContent = `${count} labelled`;
    for (const [id, label] of [["yes", true], ["no", false]]) {
      find(id).setAttribute("aria-pressed", String(labels[at] === label));
      find(id).disabled = finished;
    }
    find("skip").disabled = finished;
    find("back").disabled = at === 0;
    find("save").disabled = count === 0;
    window.scrollTo(0, 0);
  }

  function say(label) {
    if (at >= answers.length) return;
    labels[at] = label;
    keep();
    at += 1;
    show();
  }

  function skip() {
    if (at < answers.length) at += 1;
    show();
  }

  function back() {
    if (at > 0) at -= 1;
    show();
  }

  function lines() {
    const today = new Date(), two = (number) => String(number).padStart(2, "0");
    const date = `${today.getFullYear()}-${two(today.getMonth() + 1)}-${two(today.getDate())}`;
    const rows = data.answers.flatMap(([name, draw], place) => place in labels
      ? [{ draw, case: name, rater: data.rater, label: labels[place] }] : []);
    return [{ ...data.header, date }, ...rows].map((row) => `${JSON.stringify(row)}\n`).join("");
  }

  function save() {
    if (!Object.keys(labels).length) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines()], { type: "application/jsonl" }));
    link.download = data.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const actions = { y: () => say(true), n: () => say(false), s: skip, b: back, d: save };
  for (const [id, key] of [["yes", "y"], ["no", "n"], ["skip", "s"], ["back", "b"], ["save", "d"]]) {
    find(id).addEventListener("click", actions[key]);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const action = Object.hasOwn(actions, event.key.toLowerCase()) && actions[event.key.toLowerCase()];
    if (action) { event.preventDefault(); action(); }
  });
  show();
})();
