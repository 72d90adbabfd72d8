// The bit picture by pointer and by keyboard. Without this, its squares are links with titles.

const QUIET_MS = 10000;
const CAME_FROM = "fanin.picture";
const HINT = "Point at a square to read its figures.";

function start(picture) {
  const readout = picture.querySelector(".readout");
  const said = picture.querySelector("[data-said]");
  let current = 0;
  let pointed = null;
  let heard = "";
  let heardAt = 0;
  let waiting = 0;

  const svg = () => picture.querySelector("#picture-drawn > svg");
  const squares = () => [...(svg()?.querySelectorAll(":scope > :is(.cell, .item):not(.none)") ?? [])];
  const title = (square) => square?.querySelector("title").textContent ?? "";
  const focused = () => squares().find((square) => square === document.activeElement);
  const squareOf = (event) => event.target.closest?.("#picture-drawn > svg > :is(.cell, .item):not(.none)");

  function read() {
    readout.textContent = title(pointed ?? focused()) || (svg() ? HINT : "");
  }

  /** Only one square can be reached by Tab; arrow keys move from there. */
  function rove() {
    const all = squares();
    current = Math.min(current, Math.max(all.length - 1, 0));
    all.forEach((square, at) => square.setAttribute("tabindex", at === current ? "0" : "-1"));
    picture.querySelector("[data-keys]").hidden = !all.length;
  }

  function move(to) {
    const all = squares();
    if (!all[to]) return;
    current = to;
    rove();
    all[to].focus();
  }

  function leave(address, from) {
    sessionStorage.setItem(CAME_FROM, from);
    location.assign(address);
  }

  function key(event) {
    const all = squares();
    const at = all.indexOf(squareOf(event));
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const columns = Number(svg().dataset.columns);
    switch (event.key) {
      case "ArrowLeft": if (at > 0) move(at - 1); break;
      case "ArrowRight": move(at + 1); break;
      case "ArrowUp": move(at - columns); break;
      case "ArrowDown": move(at + columns < all.length ? at + columns : at); break;
      case "Home": move(0); break;
      case "End": move(all.length - 1); break;
      case "PageUp": if (svg().dataset.up) leave(svg().dataset.up, location.href); break;
      case "Enter": if (all[at].hasAttribute("href")) leave(all[at].getAttribute("href"), ""); break;
      default: return;
    }
    event.preventDefault();
  }

  /** Tell a screen reader that the square it is on has changed, but not each time. */
  function announce() {
    const now = title(focused());
    clearTimeout(waiting);
    if (!now || now === heard) return;
    const quiet = heardAt + QUIET_MS - Date.now();
    if (quiet > 0) {
      waiting = setTimeout(announce, quiet);
      return;
    }
    heard = now;
    heardAt = Date.now();
    said.textContent = now;
  }

  /** Go on by keyboard where somebody came in by keyboard: after going up, at the part they came from. */
  function arrive() {
    const from = sessionStorage.getItem(CAME_FROM);
    if (from === null) return;
    sessionStorage.removeItem(CAME_FROM);
    const place = from && new URL(from).searchParams.get("number");
    const all = squares();
    const came = place ? Number(BigInt(place) % 64n) : 0;
    move(all[came] ? came : 0);
  }

  picture.addEventListener("keydown", key);
  picture.addEventListener("pointerover", (event) => { pointed = squareOf(event) ?? null; read(); });
  picture.addEventListener("pointerleave", () => { pointed = null; read(); });
  picture.addEventListener("focusin", (event) => {
    const at = squares().indexOf(squareOf(event));
    if (at >= 0) {
      current = at;
      rove();
      heard = title(event.target); // a screen reader says it by itself
      heardAt = Date.now();
    }
    read();
  });
  picture.addEventListener("focusout", () => queueMicrotask(read));
  picture.addEventListener("morphed", () => {
    if (pointed && !pointed.isConnected) pointed = null;
    rove();
    read();
    announce();
  });
  rove();
  read();
  arrive();
}

document.querySelectorAll("[data-picture]").forEach(start);
