// Keys: j and k through rows, or through turns; Enter opens, u goes up, / searches; x marks a row, c shows those that
// are marked side by side, or a loss if none are, r reviews an answer. All of it is there as links too.
const rows = [...document.querySelectorAll("[data-row]")];
const links = rows.map((row) => row.querySelector("a[data-open]"));
const follow = (name) => {
  const link = document.querySelector(`a[data-${name}]`);
  if (link) link.click();
};
const step = (by) => {
  if (!links.length) {
    follow(by > 0 ? "later" : "earlier");
    return;
  }
  const here = links.indexOf(document.activeElement);
  const next = here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by;
  if (next >= links.length) follow("later");
  else if (next < 0) follow("earlier");
  else links[next].focus();
};
const keys = {
  j: () => step(1),
  k: () => step(-1),
  u: () => {
    // A turn that was opened from a comparison leads back to it, as it was left.
    const from = document.referrer && new URL(document.referrer);
    if (from && from.origin === location.origin && from.pathname.endsWith("/compare") && history.length > 1) {
      history.back();
      return;
    }
    const up = document.querySelector("a[data-up]") || document.querySelector(".crumbs a");
    if (up) up.click();
  },
  x: () => {
    const row = document.activeElement.closest("[data-row]");
    const box = row && row.querySelector("input[type=checkbox]");
    if (box) box.click();
  },
  c: () => {
    // Those that are marked; with none, a loss tells more than two evaluations that happen to be the newest.
    const row = document.activeElement.closest("[data-row]");
    const among = row ? row.closest("section") : document;
    const marked = among.querySelector("input[name=versions]:checked");
    const loss = !marked && (row || document).querySelector("a[data-loss]");
    const button = loss || among.querySelector("[data-compare]");
    if (button) button.click();
  },
  r: () => {
    const link = (document.activeElement.closest("[data-row]") || document).querySelector("a[data-review]");
    if (link) link.click();
  },
  "/": () => {
    const search = document.querySelector("[data-search]");
    if (search) search.focus();
  },
};
// What a page marks with a key of its own: fields are gone to, all else is clicked. What is folded away takes no focus.
const use = (element) => {
  const folded = element.closest("details");
  if (folded) folded.open = true;
  if (element.matches("textarea, input:not([type=checkbox])")) element.focus();
  else element.click();
};
addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
  if (event.key === "Escape" && typing) typing.blur();
  if (typing) return;
  const marked = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  const does = marked ? () => use(marked) : keys[event.key];
  if (does) {
    event.preventDefault();
    does();
  }
});
