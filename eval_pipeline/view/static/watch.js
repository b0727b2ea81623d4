// Keeps runs in progress up to date while somebody looks: the strip of every page, and the whole page of runs. Every second
// there, as runs write every 1.5 and who watches is to see it within three; every ten elsewhere. Only what differs is changed,
// so that focus, selection and scrolling stay. A page that is hidden asks nothing. Where no answer comes, it says since when.
const here = location.pathname === "/runs";
const strip = (root) => root.querySelector(".strip");
const become = (old, fresh) => {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) return void (old.nodeValue = fresh.nodeValue);
  for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const left = [...old.childNodes];
  for (const one of [...fresh.childNodes]) {
    // What has an id is found wherever it is; else only the next can be it, or one with an id would be skipped.
    const place = (one.id ? left : left.slice(0, 1)).findIndex((other) => other.nodeName === one.nodeName && other.id === one.id);
    if (place < 0) old.insertBefore(one, left[0] ?? null);
    else {
      for (const gone of left.splice(0, place)) gone.remove();
      become(left.shift(), one);
    }
  }
  for (const gone of left) gone.remove();
};
const refresh = async () => {
  const answer = await fetch("/runs", { cache: "no-store", signal: AbortSignal.timeout(4000) });
  if (!answer.ok) throw new Error(answer.statusText);
  const told = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (here) become(document.body, told.body);
  else if (strip(told)) become(strip(document), strip(told));
  else strip(document).remove();
};
let asking = false, heard = new Date();
setInterval(async () => {
  if (asking || document.hidden || !(here || strip(document))) return;
  asking = true;
  try {
    await refresh();
    heard = new Date();
  } catch {
    const note = document.getElementById("stale") ?? document.createElement("p");
    Object.assign(note, { id: "stale", className: "alarm" });
    note.setAttribute("role", "status");
    note.textContent = `Not up to date: the workbench has not answered since ${heard.toLocaleTimeString()}.`;
    (here ? document.querySelector("main") : strip(document)).prepend(note);
  }
  asking = false;
}, here ? 1000 : 10000);
