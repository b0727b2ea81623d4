const box = document.querySelector(".filter");
if (box) {
  const turns = [...document.querySelectorAll(".t")];
  const [kind, text, all] = ["kind", "text", "all"].map((name) => box.querySelector(`[name=${name}]`));
  const told = document.querySelector("#shown");
  const show = () => {
    const wanted = text.value.trim().toLowerCase();
    let count = 0;
    for (const turn of turns) {
      const wrong = kind.value === "!right" && turn.dataset.kind !== "right";
      const fits = (!kind.value || wrong || turn.dataset.kind === kind.value) &&
        (!wanted || turn.textContent.toLowerCase().includes(wanted));
      turn.hidden = !fits;
      count += fits;
    }
    told.textContent = `${count.toLocaleString("en")} of ${turns.length.toLocaleString("en")} shown`;
  };
  kind.addEventListener("change", show);
  text.addEventListener("input", show);
  all.addEventListener("click", () => {
    const open = all.textContent === "Open all shown";
    for (const turn of turns) if (!turn.hidden) turn.open = open;
    all.textContent = open ? "Close all shown" : "Open all shown";
  });
  box.hidden = false;
}
const aimed = () => {
  const turn = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (turn && turn.tagName === "DETAILS") { turn.open = true; turn.scrollIntoView(); }
};
addEventListener("hashchange", aimed);
aimed();
