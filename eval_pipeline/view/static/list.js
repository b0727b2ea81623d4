// The list of an exported evaluation. The filter is the part of the address after #, so that the back button knows it.
// Texts come from models: they are only ever put into the document as text.
const turns = globalThis.exportedTurns || [];
const PAGE = 100;
const form = document.querySelector("form");
const body = document.querySelector("tbody");
const status = document.querySelector("[role=status]");
const pager = document.querySelector(".pager");
const VERDICTS = { right: "✓ right", wrong: "✗ wrong", unscored: "– unscored" };

const short = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);
const counted = (values) => {
  const counts = new Map();
  for (const value of values) if (value) counts.set(value, (counts.get(value) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
};
const offer = (select, values, prefix = "") => {
  for (const [value, count] of counted(values)) {
    select.add(new Option(`${short(value, 60)} (${count.toLocaleString("en")})`, prefix + value));
  }
};
const element = (name, text, kind) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const asked = () => new URLSearchParams(location.hash.slice(1));
const has = (turn, outcome, tag, text) =>
  (!outcome || outcome === turn.verdict || outcome === `kind:${turn.kind}`) &&
  (!tag || turn.tags.includes(tag)) &&
  (!text || turn.text.includes(text));
const row = (turn) => {
  const made = element("tr");
  const head = element("th");
  head.scope = "row";
  const link = element("a", turn.place);
  link.href = turn.page;
  head.append(link);
  made.append(head);
  const cell = (header, text, kind = "text") => {
    const one = element("td", undefined, text ? kind : `${kind} none`);
    one.dataset.header = header;
    one.append(text);
    made.append(one);
  };
  cell("Question", turn.question, "text long");
  cell("Gold", turn.expected, "text long");
  cell("Answer", turn.answer, "text long");
  cell("Verdict", element("span", VERDICTS[turn.verdict], `verdict ${turn.verdict}`));
  cell("Kind", turn.kind);
  const tags = element("span");
  for (const tag of turn.tags) tags.append(element("span", short(tag, 24), "tag"), " ");
  cell("Tags", turn.tags.length ? tags : "");
  return made;
};
const lead = (link, query, page, there) => {
  query.set("page", page);
  link.href = `#${query}`;
  link.hidden = !there;
};
const show = () => {
  const query = asked();
  const [outcome, tag, text] = ["outcome", "tag", "q"].map((name) => query.get(name) || "");
  form.elements.outcome.value = outcome;
  form.elements.tag.value = tag;
  if (form.elements.q.value.trim() !== text) form.elements.q.value = text;
  const found = turns.filter((turn) => has(turn, outcome, tag, text.toLowerCase()));
  const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
  const page = Math.min(Math.max(Number.parseInt(query.get("page"), 10) || 0, 0), last);
  body.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map(row));
  const which = last ? `, page ${page + 1} of ${last + 1}` : "";
  status.textContent = `${found.length.toLocaleString("en")} of ${turns.length.toLocaleString("en")} turns${which}`;
  const [earlier, later] = pager.querySelectorAll("a");
  lead(earlier, query, page - 1, page > 0);
  lead(later, query, page + 1, page < last);
  pager.hidden = !last;
};
const ask = (replace) => {
  const query = new URLSearchParams();
  for (const name of ["outcome", "tag", "q"]) {
    const value = form.elements[name].value.trim();
    if (value) query.set(name, value);
  }
  if (`#${query}` === location.hash || (!String(query) && !location.hash)) return;
  if (replace) {
    history.replaceState(null, "", `#${query}`);
    show();
  } else location.hash = String(query);
};

offer(form.elements.outcome, turns.map((turn) => turn.verdict));
offer(form.elements.outcome, turns.map((turn) => turn.kind), "kind:");
offer(form.elements.tag, turns.flatMap((turn) => [...new Set(turn.tags)]));
document.querySelector("[data-no-script]").remove();
form.hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", () => ask(false));
form.elements.q.addEventListener("input", () => ask(true));
addEventListener("hashchange", show);
show();
