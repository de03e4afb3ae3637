// The console's behaviour: live pages, times in the viewer's zone, menu, theme. No page needs it to
// be read or used; it makes them livelier.
"use strict";
(() => {
  const html = document.documentElement;
  const find = (selector) => document.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ------------------------------------------------------------------ times
  const live = find("#live");
  let ahead = 0; // Server's clock minus ours, ms.
  const noteClock = (serverMs) => { if (serverMs) ahead = Number(serverMs) - Date.now(); };
  noteClock(find("meta[name=server-ms]")?.content);
  const now = () => Date.now() + ahead;
  const inUtc = () => localStorage.getItem("zone") === "utc";
  const pad = (number, width = 2) => String(number).padStart(width, "0");

  const written = (ms, { exact, day }) => {
    const at = new Date(ms);
    const utc = inUtc();
    const get = (part) => (utc ? at[`getUTC${part}`]() : at[`get${part}`]());
    const date = `${get("FullYear")}-${pad(get("Month") + 1)}-${pad(get("Date"))}`;
    const clock = `${pad(get("Hours"))}:${pad(get("Minutes"))}:${pad(get("Seconds"))}`;
    const fine = exact ? `.${pad(get("Milliseconds"), 3)}` : "";
    const today = new Date(now());
    const sameDay = utc
      ? at.toISOString().slice(0, 10) === today.toISOString().slice(0, 10)
      : at.toDateString() === today.toDateString();
    return `${sameDay && !day ? "" : `${date} `}${clock}${fine}${utc ? " UTC" : ""}`;
  };

  const span = (ms) => {
    const seconds = Math.floor(ms / 1000);
    if (seconds < 1) return "under 1 s";
    const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
    const first = units.findIndex(([, size]) => seconds >= size);
    return units.slice(first, first + 2)
      .map(([name, size], index) => [Math.floor((index ? seconds % units[first][1] : seconds) / size), name])
      .filter(([count]) => count).map(([count, name]) => `${count} ${name}`).join(" ");
  };
  const relative = (ms) => {
    const away = ms - now();
    if (Math.abs(away) < 1000) return "now";
    return away > 0 ? `in ${span(away)}` : `${span(-away)} ago`;
  };

  const tellTimes = (root = document) => {
    for (const element of all("time[data-ms]", root)) {
      const ms = Number(element.dataset.ms);
      const absolute = written(ms, { exact: element.hasAttribute("data-exact"), day: element.hasAttribute("data-day") });
      const cut = { second: [11, 19], minute: [11, 16], date: [5, 10] }[element.dataset.show];
      const text = cut ? written(ms, { day: true }).slice(...cut)
        : element.dataset.show === "relative" ? relative(ms)
        : element.dataset.show === "coming" ? relative(Math.max(ms, now())) : absolute;
      const clock = element.querySelector(".clock") || element;
      if (clock.textContent !== text) clock.textContent = text;
      const rel = element.querySelector(".rel");
      if (rel) { const said = relative(ms); if (rel.textContent !== said) rel.textContent = said; }
      element.title = `${new Date(ms).toISOString()} · ${written(ms, { exact: true, day: true })}`;
    }
  };
  setInterval(tellTimes, 1000);

  const zone = find("#zone");
  const tellZone = () => {
    if (!zone) return;
    const name = inUtc() ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "Local";
    zone.querySelector(".words").textContent = name;
    zone.setAttribute("aria-label", `Times are shown in ${name}. Show them in ${inUtc() ? "your own zone" : "UTC"}.`);
    zone.title = zone.getAttribute("aria-label");
  };
  const PICKERS = "input[type=datetime-local]";
  const picked = (field) => new Date(`${field.value}${inUtc() ? "Z" : ""}`).getTime();
  const setPicked = (field, ms) => {
    if (Number.isNaN(new Date(ms).getTime())) return;
    const offset = inUtc() ? 0 : new Date(ms).getTimezoneOffset();
    field.value = new Date(ms - offset * 60000).toISOString().slice(0, 19);
  };
  zone?.addEventListener("click", () => {
    const moments = all(PICKERS).filter((field) => field.value).map((field) => [field, picked(field)]);
    localStorage.setItem("zone", inUtc() ? "local" : "utc");
    for (const [field, ms] of moments) setPicked(field, ms);
    tellZone();
    tellTimes();
  });

  // ------------------------------------------------------------------ live
  const EVERY_MS = 2000;
  const button = find("#follow");
  const isOn = () => localStorage.getItem("live") !== "off";
  let busy = false;
  let failures = 0;

  const tellLive = () => {
    if (!button) return;
    button.setAttribute("aria-pressed", String(isOn()));
    button.classList.toggle("failing", failures > 1);
    button.querySelector(".words").textContent = !isOn() ? "Paused" : failures > 1 ? "No answer" : "Live";
    button.title = isOn() ? "The page follows the system every 2 s. Click to stop it." : "The page stands still. Click to follow the system.";
  };
  const roles = (root) => {
    // Rows shown as cards lose their meaning for screen readers; said again, they keep it.
    for (const table of all("table.stack", root)) {
      table.setAttribute("role", "table");
      all("thead, tbody", table).forEach((part) => part.setAttribute("role", "rowgroup"));
      all("tr", table).forEach((part) => part.setAttribute("role", "row"));
      all("thead th", table).forEach((part) => part.setAttribute("role", "columnheader"));
      all("tbody th", table).forEach((part) => part.setAttribute("role", "rowheader"));
      all("td", table).forEach((part) => part.setAttribute("role", "cell"));
    }
  };
  const settle = (root) => { tellTimes(root); roles(root); };

  const follow = async () => {
    if (busy || !live || !isOn() || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { "X-Live": "1" }, credentials: "same-origin" });
      if (answer.redirected) { location.reload(); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      noteClock(answer.headers.get("X-Server-Ms"));
      failures = 0;
      if (!isOn() || document.hidden) return;
      const answered = new DOMParser().parseFromString(text, "text/html");
      for (const id of ["title", "live"]) {
        const shown = document.getElementById(id);
        const fresh = answered.getElementById(id);
        if (!shown || !fresh) continue;
        settle(fresh);
        window.Idiomorph.morph(shown, fresh.childNodes, {
          morphStyle: "innerHTML",
          ignoreActiveValue: true,
          callbacks: {
            // What the operator opened stays open.
            beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS"),
          },
        });
      }
      document.dispatchEvent(new CustomEvent("postdate:live"));
    } catch {
      failures += 1;
    } finally {
      busy = false;
      tellLive();
    }
  };
  if (live) {
    button?.removeAttribute("hidden");
    setInterval(follow, EVERY_MS);
    document.addEventListener("visibilitychange", follow);
    button?.addEventListener("click", () => {
      localStorage.setItem("live", isOn() ? "off" : "on");
      tellLive();
      follow();
    });
  }

  // ------------------------------------------------------------------ menu, theme, copying
  const menu = find("#menu");
  const openMenu = (open) => {
    document.body.classList.toggle("nav-open", open);
    menu?.setAttribute("aria-expanded", String(open));
    if (open) find(".side a")?.focus();
  };
  menu?.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (document.body.classList.contains("nav-open")) { openMenu(false); menu.focus(); }
    const who = find("details.who[open]");
    if (who) { who.open = false; who.querySelector("summary").focus(); }
  });
  document.addEventListener("click", (event) => {
    if (document.body.classList.contains("nav-open") && !event.target.closest(".side, #menu")) openMenu(false);
    for (const who of all("details.who[open]")) if (!who.contains(event.target)) who.open = false;
    const copy = event.target.closest("[data-copy]");
    if (copy) navigator.clipboard?.writeText(copy.dataset.copy).then(() => { copy.textContent = "Copied"; });
  });

  const theme = find("#theme");
  const names = { auto: "as the system", light: "light", dark: "dark" };
  const tellTheme = () => {
    const choice = html.dataset.choice;
    theme?.setAttribute("aria-label", `Theme: ${names[choice]}. Change it.`);
    if (theme) theme.title = theme.getAttribute("aria-label");
    all("[data-theme-icon]").forEach((icon) => { icon.toggleAttribute("hidden", icon.dataset.themeIcon !== choice); });
  };
  theme?.addEventListener("click", () => {
    const order = ["auto", "light", "dark"];
    window.postdateTheme(order[(order.indexOf(html.dataset.choice) + 1) % order.length]);
    tellTheme();
  });

  // ------------------------------------------------------------------ what a drawing says
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const tell = (target, x, y) => {
    const shown = target?.closest?.("g, [data-tip]");
    const said = shown?.matches("[data-tip]") ? shown : shown?.querySelector("[data-tip]");
    tip.hidden = !said;
    if (!said) return;
    const { tip: words, from, to } = said.dataset;
    const moment = (ms) => written(Number(ms), { exact: Number(to) - Number(from) < 1000 });
    tip.textContent = from ? `${words} · ${moment(from)}${to ? ` to ${moment(to)}` : ""}` : words;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y - box.height - 12 < 8 ? y + 18 : y - box.height - 12}px`;
  };
  document.addEventListener("pointermove", (event) => tell(event.target, event.clientX, event.clientY));
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest("svg")) { tip.hidden = true; return; }
    const box = event.target.getBoundingClientRect();
    tell(event.target, box.left, box.top);
  });

  // ------------------------------------------------------------------ forms
  // A form that filters goes without its empty fields: its address can be read and shared.
  for (const form of all("form[data-tidy]")) {
    form.addEventListener("submit", () => {
      for (const field of all("input, select", form)) if (!field.value) field.disabled = true;
    });
  }
  // A moment is picked in the zone that times are shown in, and sent with it.
  for (const field of all(PICKERS)) {
    const form = field.form;
    if (field.dataset.ms) setPicked(field, Number(field.dataset.ms));
    form?.addEventListener("submit", () => {
      if (!field.value || field.disabled) return;
      const name = `${field.name}_ms`;
      const exact = form.elements.namedItem(name) ?? document.createElement("input");
      exact.type = "hidden";
      exact.name = name;
      exact.value = String(picked(field));
      form.append(exact);
    });
  }
  // One click is one order.
  for (const form of all("form[method=post]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "1";
    });
  }
  window.addEventListener("pageshow", () => all("form[data-sent]").forEach((form) => delete form.dataset.sent));

  tellZone(); tellLive(); tellTheme(); settle(document);
})();
