// Keys, filters that answer while a person types, fields of the form that seeks, and buttons that
// copy code. The pages work without this script. No text of a page is ever used as markup or as
// code: parts of a page that was fetched from this server replace parts of this page, as nodes.
"use strict";

(() => {
  const find = (selector) => document.querySelector(selector);
  const TYPING_MS = 180;

  let wanted = 0;
  async function show(address) {
    const mine = ++wanted;
    const response = await fetch(address, { credentials: "same-origin" });
    const text = await response.text();
    if (mine !== wanted || !response.ok) return;
    const page = new DOMParser().parseFromString(text, "text/html");
    for (const selector of ["#results", "#estimate", ".found", "#read-at"]) {
      const fresh = page.querySelector(selector);
      const old = find(selector);
      if (!fresh || !old) continue;
      const opened = old.querySelector("#copied")?.open;
      old.replaceWith(document.adoptNode(fresh));
      if (opened && find("#copied")) find("#copied").open = true;
    }
    offerCopies();
    history.replaceState(null, "", address);
  }

  const COPIED_MS = 2000;
  function offerCopies() { // without TLS, browsers offer the clipboard only on local hosts
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.hidden = !navigator.clipboard;
    }
  }
  offerCopies();
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const code = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, COPIED_MS);
  });

  for (const live of document.querySelectorAll("form[data-live]")) {
    let timer = 0;
    const search = () => {
      const given = new URLSearchParams(location.search); // also has the fields of other forms
      given.delete("page");
      for (const field of live.querySelectorAll("input:not([type=hidden])")) {
        if (field.value) given.set(field.name, field.value);
        else given.delete(field.name);
      }
      const query = given.toString();
      show(query ? `?${query}` : location.pathname).catch(() => live.submit());
    };
    live.addEventListener("input", (event) => {
      const shown = live.querySelector(`[data-of="${event.target.name}"]`);
      if (shown) shown.textContent = event.target.value;
      clearTimeout(timer);
      timer = setTimeout(search, TYPING_MS);
    });
    live.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      search();
    });
  }

  const tail = find("#live");
  if (tail) {
    let timer = 0;
    const isLive = () => tail.getAttribute("aria-pressed") === "true";
    const look = async () => {
      if (!document.hidden) await show(location.href).catch(() => {});
      if (isLive()) timer = setTimeout(look, Number(tail.dataset.interval));
    };
    tail.hidden = false;
    tail.addEventListener("click", () => {
      tail.setAttribute("aria-pressed", String(!isLive()));
      clearTimeout(timer);
      if (isLive()) look();
      else wanted++; // an answer that is under way comes too late
    });
  }

  function again() { // reads the results again while the server works on them
    const work = find("#results[data-again]");
    if (!work) return;
    setTimeout(async () => {
      if (!document.hidden) await show(location.href).catch(() => {});
      if (find("#results[data-again]")) again();
      else location.reload(); // the page has another button now
    }, Number(work.dataset.again));
  }
  again();

  const seek = find("#seek");
  if (seek) {
    const fit = () => {
      for (const field of document.querySelectorAll("[data-for]")) {
        field.hidden = field.dataset.for !== seek.value;
      }
    };
    seek.addEventListener("change", fit);
    fit();
  }

  function move(step) {
    const rows = [...document.querySelectorAll(".rows tbody a.open")];
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
    if (next) next.focus();
  }

  let wentFor = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape" && typing) typing.blur();
    if (typing || find("dialog[open]")) return;
    const now = Date.now();
    const link = now < wentFor && find(`.side nav a[data-key="${CSS.escape(event.key)}"]`);
    wentFor = 0;
    if (link) {
      event.preventDefault();
      link.click();
      return;
    }
    const follow = (rel) => find(`.pager a[rel="${rel}"]`)?.click();
    const keys = {
      g: () => { wentFor = now + 1500; },
      "/": () => find("#q")?.focus(),
      "?": () => find("#keys").showModal(),
      j: () => move(1),
      k: () => move(-1),
      l: () => find("#live")?.click(),
      n: () => follow("next"),
      p: () => follow("prev"),
    };
    const run = keys[event.key];
    if (run) {
      event.preventDefault();
      run();
    }
  });
})();
