// Keeps what is marked as live up to date while somebody looks: everything of a page that has a key is taken from the page
// of runs. Every second there, as runs write every second and who watches is to see it within three; every ten elsewhere. A
// page that is hidden asks nothing, and none asks again before it is answered.
const here = location.pathname === "/runs";
const marked = (root) => new Map([...root.querySelectorAll("[data-live]")].map((part) => [part.dataset.live, part]));
const refresh = async () => {
  const answer = await fetch("/runs", { cache: "no-store" });
  if (!answer.ok) return;
  const now = marked(new DOMParser().parseFromString(await answer.text(), "text/html"));
  const shown = marked(document);
  // A run began or ended: other parts of the page change as well.
  if (here && [...now.keys()].join() !== [...shown.keys()].join()) location.reload();
  for (const [key, part] of shown) {
    const fresh = now.get(key);
    if (!fresh) part.remove();
    else if (fresh.innerHTML !== part.innerHTML && !(part.contains(document.activeElement) && part.querySelector("button"))) part.replaceChildren(...fresh.childNodes);
  }
};
let asked = false;
setInterval(async () => {
  if (asked || document.hidden || !(here || document.querySelector("[data-live]"))) return;
  asked = true;
  await refresh().catch(() => {});
  asked = false;
}, here ? 1000 : 10000);
