// What the theme does not do: folds open for print and for a link into them,
// paper is white, the arrows of the contents say what they open, and the menu
// of schemes hears the keyboard.
(() => {
  "use strict";
  const opened = [];
  const page = document.documentElement;
  let theme;

  window.addEventListener("beforeprint", () => {
    theme = page.dataset.theme;
    page.dataset.theme = "light";
    for (const fold of document.querySelectorAll("details:not([open])")) {
      fold.open = true;
      opened.push(fold);
    }
  });

  window.addEventListener("afterprint", () => {
    page.dataset.theme = theme;
    for (const fold of opened.splice(0)) fold.open = false;
  });

  // A figure may be in a fold.
  function openTarget() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    const fold = target && target.closest("details");
    if (!fold) return;
    fold.open = true;
    target.scrollIntoView();
  }

  function nameArrows() {
    for (const arrow of document.querySelectorAll(".bd-sidenav summary")) {
      const entry = arrow.closest("li").querySelector("a").textContent;
      arrow.setAttribute("aria-label", `Pages below ${entry.trim()}`);
    }
  }

  // The theme takes the focus away, and the menu then hears no key.
  window.addEventListener("click", (event) => {
    const button = event.target.closest(".theme-switch-button");
    if (button) button.focus();
  });

  window.addEventListener("hashchange", openTarget);
  window.addEventListener("DOMContentLoaded", nameArrows);
  window.addEventListener("DOMContentLoaded", openTarget);

  // A file may not fetch its neighbors: then results come without excerpts.
  if (location.protocol === "file:" &&
      typeof DOCUMENTATION_OPTIONS !== "undefined")
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
