"use strict";
// Filters, order and the view of one question. Text from the run is shown by textContent only.
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const gates = Object.assign(Object.create(null), JSON.parse(byId("gate-data").textContent));
  const cases = new Map(data.cases.map((item) => [item.id, item]));
  const drawer = byId("drawer");
  const list = byId("list");
  const items = [...list.children];
  const initial = new Map(items.map((item, place) => [item, place]));
  const shares = new Map(items.map((item) => [item, item.querySelector(".share b").textContent]));
  const countText = byId("count").textContent;
  let visible = items;
  let opener = null;

  function el(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "class") element.className = value;
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  // ---- the state of the page is its hash: #gate-NAME&q=…&cat=…&out=…&case=…
  function read() {
    const state = { gate: "", q: "", cat: "", out: "", case: "" };
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      try {
        if (at < 0 && gates[decodeURIComponent(part)]) state.gate = decodeURIComponent(part);
        else if (at > 0 && part.slice(0, at) in state) state[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
      } catch { /* a hash that is not ours */ }
    }
    return state;
  }

  function write(changes, push) {
    const state = { ...read(), ...changes };
    const parts = state.gate ? [encodeURIComponent(state.gate)] : [];
    for (const key of ["q", "cat", "out", "case"]) {
      if (state[key]) parts.push(`${key}=${encodeURIComponent(state[key])}`);
    }
    const hash = parts.length ? `#${parts.join("&")}` : location.pathname + location.search;
    if (push) history.pushState(null, "", hash); else history.replaceState(null, "", hash);
    show();
  }

  // ---- list
  const haystacks = new Map();
  function haystack(item) {
    if (!haystacks.has(item)) {
      const found = cases.get(item.dataset.case);
      const answers = found ? found.draws.map((draw) => draw.answer || "").join("\n") : "";
      haystacks.set(item, `${item.textContent}\n${answers}`.toLowerCase());
    }
    return haystacks.get(item);
  }

  function fits(item, state, gate) {
    const found = cases.get(item.dataset.case);
    if (state.q && !state.q.toLowerCase().split(/\s+/).every((word) => haystack(item).includes(word))) return false;
    if (!found) return !state.cat && !state.out && !gate;
    if (gate && !(found.groups.includes(gate.group) && gate.metric in found.metrics)) return false;
    if (state.cat && found.category !== state.cat) return false;
    if (state.out === "flips") return found.flips;
    if (state.out === "wrong") return found.states.some((s) => !["grounded", "correctly_refused", "met", "none"].includes(s));
    return !state.out || found.states.includes(state.out);
  }

  function badness(item, gate) {
    const measured = cases.get(item.dataset.case)?.metrics[gate.metric];
    if (!measured) return Infinity;
    if (measured[2] === null) return 0.999; // lost: counts against a gate, but behind what is known to be wrong
    return measured[0] === null ? -measured[2] : measured[0];
  }

  function arrange(state) {
    const gate = gates[state.gate];
    visible = items.filter((item) => fits(item, state, gate));
    visible.sort((a, b) => (gate ? badness(a, gate) - badness(b, gate) : 0) || initial.get(a) - initial.get(b));
    const chosen = new Set(visible);
    for (const item of items) {
      item.hidden = !chosen.has(item);
      const measured = gate && cases.get(item.dataset.case)?.metrics[gate.metric];
      item.querySelector(".share b").textContent = measured ? measured[1] : shares.get(item);
    }
    list.append(...visible);
    const ids = new Set(visible.map((item) => item.dataset.case));
    for (const square of document.querySelectorAll(".squares a")) {
      square.classList.toggle("dim", !ids.has(square.dataset.case));
    }
    const filtered = state.gate || state.q || state.cat || state.out;
    byId("count").textContent = filtered
      ? `${visible.length} of ${items.length} listed questions${gate ? `, worst by ${gate.event} first` : ""}`
      : countText;
    byId("clear").hidden = !filtered;
    byId("ungate").hidden = !gate;
    byId("ungate").textContent = gate ? `Gate: ${gate.name} ✕` : "";
    byId("ungate").setAttribute("aria-label", gate ? `Stop filtering by gate ${gate.name}` : "No gate");
  }

  // ---- where a claim stands in an answer, a quote in a context
  function folded(text) {
    const letters = [], at = [];
    let space = true;
    for (let i = 0; i < text.length; i++) {
      let c = text[i].toLowerCase();
      if (/\s/.test(c)) { if (!space) { letters.push(" "); at.push(i); } space = true; continue; }
      if ("“”„«»".includes(c)) c = '"'; else if ("‘’".includes(c)) c = "'"; else if ("–—‑".includes(c)) c = "-";
      letters.push(c.length === 1 ? c : text[i]); at.push(i); space = false;
    }
    return { text: letters.join(""), at };
  }

  function locate(text, wanted) {
    const hay = folded(text), needle = folded(wanted).text.replace(/^[\s"'.,;:!?]+|[\s"'.,;:!?]+$/g, "");
    if (needle.length < 2) return null;
    const start = hay.text.indexOf(needle);
    return start < 0 ? null : [hay.at[start], hay.at[start + needle.length - 1] + 1];
  }

  function nearest(text, claim) {
    const tokens = (part) => new Set(part.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) || []);
    const wanted = tokens(claim);
    let best = null, score = 0.6;
    for (const match of text.matchAll(/(?:[^.!?\n]|[.!?](?=[^\s.!?]))+[.!?]*/g)) {
      const has = tokens(match[0]);
      const share = wanted.size ? [...wanted].filter((token) => has.has(token)).length / wanted.size : 0;
      if (share >= score) { best = [match.index, match.index + match[0].length]; score = share + 1e-9; }
    }
    return best;
  }

  function marked(text, marks) {
    const pieces = [];
    let at = 0;
    for (const mark of marks.filter((m) => m.range).sort((a, b) => a.range[0] - b.range[0] || b.range[1] - a.range[1])) {
      const [start, end] = [Math.max(mark.range[0], at), mark.range[1]];
      if (end <= start) continue;
      pieces.push(text.slice(at, start), mark.make(text.slice(start, end)));
      at = end;
    }
    pieces.push(text.slice(at));
    return pieces;
  }

  // ---- the view of a question
  const GLYPH = { grounded: "✓", correctly_refused: "✓", met: "✓", unsupported: "✕", answered: "✕", unmet: "✕", over_refused: "✕", error: "!", none: "–" };

  function swatch(state) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg"), rect = document.createElementNS(space, "rect");
    for (const [key, value] of [["width", 14], ["height", 14], ["class", "sq"], ["aria-hidden", "true"]]) svg.setAttribute(key, value);
    for (const [key, value] of [["x", 1], ["y", 1], ["width", 12], ["height", 12], ["class", `s-${state}`]]) rect.setAttribute(key, value);
    svg.append(rect);
    return svg;
  }

  function claimLine(claim, quotes) {
    const [text, quote, supported, by] = claim;
    const note = by === "model" ? null : el("small", {}, by === "quotes" ? "its quote is not in the context (found by code)" : "new numbers or names (found by code)");
    const parts = [el("b", { "aria-hidden": "true" }, supported ? "✓" : "✕"), el("span", { dir: "auto" }, el("span", { class: "vh" }, supported ? "supported: " : "not in the context: "), text, note)];
    const mark = supported && quote ? quotes.get(quote) : null;
    if (!mark) {
      if (supported && quote) parts[1].append(el("small", {}, `“${quote}”`));
      return el("div", { class: `claim ${supported ? "yes" : "no"}` }, ...parts);
    }
    const button = el("button", { type: "button", class: "claim yes", title: "Show where this stands in the context" }, ...parts);
    const light = (on) => mark.forEach((node) => node.classList.toggle("lit", on));
    for (const [event, on] of [["mouseenter", true], ["mouseleave", false], ["focus", true], ["blur", false]]) button.addEventListener(event, () => light(on));
    button.addEventListener("click", () => { light(true); mark[0].scrollIntoView({ block: "center" }); });
    return button;
  }

  function transcript(attack, place) {
    return attack.talks[place].flatMap(([asked, said]) => [
      el("p", { class: "turn", dir: "auto" }, el("small", {}, "user"), asked),
      el("p", { class: "turn", dir: "auto" }, el("small", {}, "bot"), said),
    ]);
  }

  function attackView(attack) {
    const planted = attack.planted.map(([id, text]) => el("article", { class: "chunk" }, el("header", {}, el("span", {}, "planted"), el("b", { dir: "auto" }, id)), el("p", { class: "text", dir: "auto" }, text)));
    const suffix = attack.suffix ? [el("article", { class: "chunk" }, el("header", {}, el("span", {}, "added to the system prompt")), el("p", { class: "text", dir: "auto" }, attack.suffix))] : [];
    return [el("p", { class: "aside" }, attack.twin_of ? `harmless twin of ${attack.twin_of}` : attack.facts.join(" · ")), el("div", { class: "chunks" }, ...planted, ...suffix)];
  }

  function drawCard(draw, quotes, attack, place) {
    const judged = draw.judged;
    const claims = judged ? judged.claims : [];
    const card = el("article", { class: "draw" });
    card.append(el("header", {}, swatch(draw.state), el("span", {}, `${GLYPH[draw.state]} ${data.words[draw.state]}`), el("small", {}, `draw ${draw.index + 1}`)));
    if (attack) card.append(...transcript(attack, place));
    if (draw.answer === null) card.append(el("p", { class: "text lost", dir: "auto" }, draw.error || "no answer"));
    else {
      const marks = claims.filter((claim) => !claim[2]).map((claim) => {
        const exact = locate(draw.answer, claim[0]);
        const range = exact || nearest(draw.answer, claim[0]);
        return { range, make: (text) => el("mark", { class: exact ? "invented" : "invented near", title: `not in the context: ${claim[0]}` }, text) };
      });
      card.append(el("p", { class: "text", dir: "auto" }, ...marked(draw.answer, marks)));
      if (draw.error) card.append(el("p", { class: "text lost", dir: "auto" }, draw.error));
    }
    for (const why of draw.amiss) card.append(el("p", { class: "aside found", dir: "auto" }, why));
    if (attack && attack.found[place]) card.append(el("p", { class: "aside found", dir: "auto" }, `found: ${attack.found[place]}`));
    if (claims.length) card.append(el("div", { class: "claims" }, ...claims.map((claim) => claimLine(claim, quotes)), judged.more_claims ? el("small", {}, `and ${judged.more_claims} more in judgements.jsonl`) : null));
    if (judged) {
      const notes = [];
      if (judged.error) notes.push(`not judged: ${judged.error}`);
      if (judged.correct !== null && judged.correct !== undefined) notes.push(judged.correct ? "the judge: agrees with the reference" : "the judge: does not say what the reference says");
      if (judged.corrections.length) notes.push(`corrected by code: ${[...new Set(judged.corrections.map((text) => text.split(":")[0]))].join(", ")}`);
      if (judged.rationale) notes.push(`judge: ${judged.rationale}`);
      if (notes.length) card.append(el("p", { class: "aside", dir: "auto" }, notes.join("\n")));
    }
    const facts = draw.seed === null ? [] : [`seed ${draw.seed}`];
    if (draw.tokens) facts.push(`${draw.tokens[0]} + ${draw.tokens[1]} tokens`);
    if (draw.seconds !== null && draw.seconds !== undefined) facts.push(`${draw.seconds.toFixed(1)} s`);
    if (draw.finish && draw.finish !== "stop") facts.push(`ended: ${draw.finish}`);
    card.append(el("p", { class: "aside" }, facts.join(" · ")));
    return card;
  }

  function contextView(found, context, quotes) {
    const served = found.draws.filter((draw) => context.draws.includes(draw.index));
    const wanted = new Set(served.flatMap((draw) => (draw.judged ? draw.judged.claims : [])).filter((claim) => claim[2] && claim[1]).map((claim) => claim[1]));
    const chunks = context.chunks.map(([id, text, similarity, relevant], place) => {
      const marks = [...wanted].map((quote) => ({
        range: locate(text, quote),
        make: (part) => {
          const node = el("mark", { class: "quote" }, part);
          quotes.set(quote, [...(quotes.get(quote) || []), node]);
          return node;
        },
      }));
      return el("article", { class: relevant ? "chunk relevant" : "chunk" },
        el("header", {}, el("span", {}, `${place + 1}.`), el("b", { dir: "auto" }, id),
          relevant ? el("span", { class: "yes" }, "✓ relevant") : context.known ? el("span", {}, "not relevant") : null,
          similarity === null ? null : el("span", { class: "num" }, `similarity ${similarity.toFixed(3)}`)),
        el("p", { class: "text", dir: "auto" }, ...marked(text, marks)));
    });
    const which = found.contexts.length > 1 ? `, answer${context.draws.length > 1 ? "s" : ""} ${context.draws.map((index) => index + 1).join(", ")}` : "";
    return [el("h3", {}, `What the model was given${which}`), el("div", { class: "chunks" }, ...chunks)];
  }

  const LEVEL = { observed: "seen on the wire: the judge read exactly what the model was given", reported: "reported: the bot returned its prompt", claimed: "claimed: the bot named its contexts, no prompt that was seen proves them", none: "nothing shows what the model was given" };

  function proof(found) {
    const levels = new Map();
    for (const draw of found.draws) levels.set(draw.level, [...(levels.get(draw.level) || []), draw]);
    return [...levels].map(([level, draws]) => {
      const exchanges = draws.map((draw) => draw.exchange).filter(Boolean);
      return `${draws.length} of ${found.draws.length} ${LEVEL[level]}${exchanges.length ? ` (exchange ${exchanges.join(", ")})` : ""}`;
    }).join("; ");
  }

  function quoted(word) { return /^[A-Za-z0-9_.,:=@%+\/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`; }

  function fill(id) {
    const found = cases.get(id), body = byId("drawer-body");
    if (!found) {
      body.replaceChildren(el("h2", { id: "drawer-title", tabindex: "-1" }, "This question is not on the page"), el("p", {}, "Only the worst are; its answers are in draws.jsonl, its verdicts in judgements.jsonl."));
      return;
    }
    const quotes = new Map();
    const given = found.contexts.flatMap((context) => contextView(found, context, quotes));
    const config = byId("meta").dataset.config || "CONFIG";
    body.replaceChildren(
      el("div", { class: "tags" }, el("span", { class: "id", dir: "auto" }, found.id), el("span", { dir: "auto" }, found.category), el("span", {}, found.attack && !found.attack.twin_of ? "attack" : found.expect === "answer" ? "should be answered" : "should be refused"), found.flips ? el("span", {}, "draws disagree") : null),
      ...found.history.map(([role, text]) => el("p", { class: "turn", dir: "auto" }, el("small", {}, role), text)),
      el("h2", { id: "drawer-title", dir: "auto", tabindex: "-1" }, found.question),
      ...(found.reference ? [el("p", { class: "reference", dir: "auto" }, el("small", {}, "reference"), found.reference)] : []),
      ...(found.attack ? attackView(found.attack) : []),
      el("h3", {}, found.draws.length === 1 ? "The answer" : `The ${found.draws.length} answers`),
      el("div", { class: "draws" }, ...found.draws.map((draw, place) => drawCard(draw, quotes, found.attack, place))),
      ...(given.length ? given : [el("h3", {}, "No context is known")]),
      el("p", { class: "aside" }, `Proof: ${proof(found)}${found.contexts.map((context) => `. Context ${context.digest}`).join("")}`),
      el("h3", {}, "Ask it again"),
      el("code", { class: "command" }, `evalrun ${found.attack ? "redteam" : "run"} ${quoted(config)} --live --case ${quoted(found.id)}`),
    );
  }

  function showDrawer(id) {
    if (!id) {
      if (drawer.open) drawer.close();
      return;
    }
    fill(id);
    if (!drawer.open) { opener = document.activeElement; drawer.showModal(); }
    const place = visible.findIndex((item) => item.dataset.case === id);
    byId("drawer-place").textContent = place < 0 ? "" : `${place + 1} of ${visible.length}`;
    byId("prev").disabled = place <= 0;
    byId("next").disabled = place < 0 || place >= visible.length - 1;
    drawer.scrollTop = 0;
    byId("drawer-title").focus({ preventScroll: true });
  }

  function step(by) {
    const place = visible.findIndex((item) => item.dataset.case === read().case);
    const next = visible[place + by];
    if (place >= 0 && next) write({ case: next.dataset.case });
  }

  // ---- all together
  function show() {
    const state = read();
    for (const row of document.querySelectorAll(".gate")) row.classList.toggle("chosen", row.id === state.gate);
    for (const row of document.querySelectorAll(".gate-row")) row.setAttribute("aria-current", row.dataset.gate === state.gate ? "true" : "false");
    if (byId("q").value !== state.q) byId("q").value = state.q;
    byId("cat").value = state.cat;
    byId("out").value = state.out;
    arrange(state);
    showDrawer(state.case);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (link.dataset.gate) {
      event.preventDefault();
      write({ gate: read().gate === link.dataset.gate ? "" : link.dataset.gate }, true);
      if (read().gate) byId("cases").scrollIntoView();
    } else if (link.getAttribute("href").startsWith("#case=")) {
      event.preventDefault();
      write({ case: link.closest("[data-case]").dataset.case }, true);
    }
  });
  byId("q").addEventListener("input", (event) => write({ q: event.target.value }));
  byId("cat").addEventListener("change", (event) => write({ cat: event.target.value }));
  byId("out").addEventListener("change", (event) => write({ out: event.target.value }));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", () => { write({ gate: "", q: "", cat: "", out: "" }); byId("q").focus(); });
  byId("ungate").addEventListener("click", () => { write({ gate: "" }); byId("q").focus(); });
  byId("prev").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => { if (event.target === drawer) drawer.close(); });
  drawer.addEventListener("close", () => {
    if (read().case) write({ case: "" });
    if (opener && opener.isConnected) opener.focus();
  });
  drawer.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  for (const group of document.querySelectorAll(".squares")) {
    const squares = [...group.children];
    squares.forEach((square, place) => square.setAttribute("tabindex", place ? "-1" : "0"));
    group.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -squares.length, End: squares.length }[event.key];
      const at = squares.indexOf(document.activeElement);
      if (!by || at < 0) return;
      event.preventDefault();
      const next = squares[Math.min(squares.length - 1, Math.max(0, at + by))];
      squares[at].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  }
  window.addEventListener("hashchange", show);
  window.addEventListener("popstate", show);

  const age = byId("age");
  if (age) {
    const days = Math.floor((Date.now() - Date.parse(`${age.dataset.day}T00:00:00Z`)) / 86400000);
    if (days >= 0) age.textContent = days === 0 ? ", today" : days === 1 ? ", yesterday" : `, ${days} days ago`;
  }
  byId("filters").hidden = false;
  show();
  if (read().gate && !read().case) byId(read().gate).scrollIntoView({ block: "center" });
})();
