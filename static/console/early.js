// Run before the first paint: the theme, so that a dark page never flashes white.
"use strict";
(() => {
  const wanted = localStorage.getItem("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = (choice) => {
    const resolved = choice === "light" || choice === "dark" ? choice : dark.matches ? "dark" : "light";
    document.documentElement.dataset.theme = resolved;
    document.documentElement.dataset.choice = choice;
  };
  apply(wanted || "auto");
  dark.addEventListener("change", () => apply(localStorage.getItem("theme") || "auto"));
  window.postdateTheme = (choice) => {
    localStorage.setItem("theme", choice);
    apply(choice);
  };
})();
