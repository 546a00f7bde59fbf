"use strict";
function replay(block) {
  const search = JSON.parse(block.querySelector("script").textContent);
  const [slider, button, said, here, now] = [".step", ".play", ".said", ".here", ".now"].map((c) => block.querySelector(c));
  const marks = [...block.querySelectorAll("[data-f]")];

  // Functions in the model after record k, or null where the records do not tell.
  function inModel(k) {
    const chapter = search.chapters.filter((c) => c.first <= k).at(-1);
    if (chapter.begin === null) return null;
    const inside = new Set(chapter.begin);
    for (let i = chapter.first; i <= k; i++) {
      const [, , , , , , added, removed] = search.records[i];
      added.forEach((f) => inside.add(f));
      removed.forEach((f) => inside.delete(f));
    }
    return inside;
  }

  function sentence(k) {
    const [start, move, f, objective, active, noise, added, removed] = search.records[k];
    const several = added.length + removed.length > 1;
    const listed = (fs) => fs.map((g) => search.names[g]).join(", ");
    const what = several ? [added.length ? `added ${listed(added)}` : "", removed.length ? `removed ${listed(removed)}` : ""]
      .filter((part) => part).join("; ")
      : move in search.words && f >= 0 ? `${search.words[move]} ${search.names[f]}`
      : move === "noise" ? "the noise was re-estimated" : "several functions were re-estimated together";
    const kept = search.winner[0] <= k && k <= search.winner[1] ? ", the one that was kept" : "";
    const level = search.noise ? `, noise ${noise}` : "";
    return `Record ${k + 1} of ${search.records.length} (start ${start}${kept}): ${what}. `
      + `Objective ${objective} nats, ${active} function${active === 1 ? "" : "s"} in the model${level}.`;
  }

  function show() {
    const k = Number(slider.value) - 1;
    const inside = inModel(k);
    here.setAttribute("cx", search.x[k]);
    here.setAttribute("cy", search.y[k]);
    now.setAttribute("d", `M${search.x[k]} ${search.span[0]}V${search.span[1]}`);
    for (const mark of marks) {
      const f = Number(mark.dataset.f);
      mark.classList.toggle("in", inside !== null && inside.has(f));
      const [, , moved, , , , added, removed] = search.records[k];
      mark.classList.toggle("moved", f === moved || added.includes(f) || removed.includes(f));
    }
    said.textContent = sentence(k) + (inside === null ? " Which functions they are was not recorded." : "");
    slider.setAttribute("aria-valuetext", `record ${k + 1}, objective ${search.records[k][3]}`);
  }

  let timer = null;
  let untouched = true; // the slider stands where the model was reached, and the first play begins at the beginning
  function stop() {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
    button.setAttribute("aria-pressed", "false");
  }
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (untouched || slider.value === slider.max) slider.value = "1";
    untouched = false;
    button.textContent = "Pause";
    button.setAttribute("aria-pressed", "true");
    // However long the search was, it plays in about twenty seconds.
    const stride = Math.max(1, Math.round(Number(slider.max) / 200));
    timer = setInterval(() => {
      slider.value = String(Number(slider.value) + stride);
      show();
      if (slider.value === slider.max) stop();
    }, 100);
  });
  slider.addEventListener("input", () => { untouched = false; if (timer !== null) stop(); show(); });
  show();
}

const blocks = [...document.querySelectorAll(".search")];
blocks.forEach(replay);
const which = document.getElementById("which");
if (which) which.addEventListener("change", () => blocks.forEach((block, k) => { block.hidden = String(k) !== which.value; }));
