"use strict";
// Fetches this same page every two seconds and puts its parts in place; without it the page still refreshes itself.
const PERIOD_MS = 2000;
let lastAnswer = Date.now();

function showAge(seconds, lost) {
  const age = document.getElementById("age");
  const whole = Math.max(0, Math.round(seconds));
  const shown = whole < 120 ? `${whole} s` : `${Math.round(whole / 60)} min`;
  const old = lost || whole >= Number(age.dataset.old);
  age.textContent = lost ? `no answer for ${shown}` : old ? `data is ${shown} old` : "live";
  age.className = old ? "old" : "";
  document.body.classList.toggle("stale", old);
}

function selecting() {
  const selection = getSelection();
  return selection && !selection.isCollapsed;
}

async function refresh() {
  if (document.hidden || selecting()) return;
  try {
    const answer = await fetch(location.pathname + location.search, {cache: "no-store", signal: AbortSignal.timeout(5000)});
    if (!answer.ok) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement && document.activeElement.getAttribute("href");
    const unfolded = [...document.querySelectorAll("details[open]")].map(details => details.id);
    for (const part of ["main", "header#top"])
      document.querySelector(part).innerHTML = fresh.querySelector(part).innerHTML;
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
    document.title = fresh.title;
    lastAnswer = Date.now();
    // The server's own clock tells the age, so a wrong clock on this side does not matter.
    const at = Number(document.getElementById("age").dataset.at);
    showAge(at ? Date.parse(answer.headers.get("Date")) / 1000 - at : 0, false);
  } catch {
    const silence = (Date.now() - lastAnswer) / 1000;
    if (silence > PERIOD_MS / 1000) showAge(silence, true);
  }
}

(async function loop() {
  for (;;) {
    await new Promise(done => setTimeout(done, PERIOD_MS));
    await refresh();
  }
})();
document.addEventListener("visibilitychange", refresh);
