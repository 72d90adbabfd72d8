// What every page needs: relative times that stay true, and live views.
import { follow } from "./live.js";

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** A duration in its two largest units, as the server writes it. */
export function span(seconds) {
  let left = Math.floor(seconds);
  for (let at = 0; at < UNITS.length; at += 1) {
    const [unit, size] = UNITS[at];
    if (left >= size) {
      const whole = Math.floor(left / size);
      const below = UNITS[at + 1];
      const rest = below ? Math.floor((left % size) / below[1]) : 0;
      return `${whole} ${unit}${rest ? ` ${rest} ${below[0]}` : ""}`;
    }
  }
  return "0 s";
}

function age() {
  for (const time of document.querySelectorAll("time[data-at]")) {
    const passed = (Date.now() - Number(time.dataset.at)) / 1000;
    const text = passed >= 0 ? `${span(passed)} ago` : `in ${span(-passed)}`;
    if (time.firstChild.nodeValue !== text) time.firstChild.nodeValue = text;
  }
}

/** The numbers of a question are of what was counted. While other values are typed, nobody can act on them. */
function narrow(form) {
  const typed = [...form.querySelectorAll("input:not([type=hidden])")].some((field) => field.value !== field.defaultValue);
  for (const button of document.querySelectorAll(".do button")) button.disabled = typed;
  for (const notice of document.querySelectorAll("[data-recount]")) notice.hidden = !typed;
}

for (const form of document.querySelectorAll("form[data-narrows]")) {
  form.addEventListener("input", () => narrow(form));
  addEventListener("pageshow", () => narrow(form)); // a browser that goes back fills in what was typed
}

setInterval(age, 5000);
const main = document.getElementById("main");
if (main.dataset.live) follow(main.dataset.live, age);
