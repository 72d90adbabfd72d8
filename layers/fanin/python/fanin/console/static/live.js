// Live views: server-sent events, one an answer. The browser asks again; not while nobody looks at the page.

const AGAIN_SECONDS = 30;
const state = document.getElementById("live-state");

/** Change an element into what it should be, touching only what differs: focus and hover stay. */
export function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  for (const { name } of [...from.attributes]) {
    // Where the keyboard is in a picture, and what somebody has opened, is the reader's own.
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && name !== "tabindex") from.setAttribute(name, value);
  }
  morphChildren(from, to);
}

function morphChildren(from, to) {
  const wanted = [...to.childNodes];
  const there = [...from.childNodes];
  wanted.forEach((node, at) => {
    if (at < there.length) morph(there[at], node);
    else from.append(node);
  });
  for (const extra of there.slice(wanted.length)) extra.remove();
}

function show(fragments, shown) {
  for (const [id, html] of Object.entries(fragments)) {
    const element = document.getElementById(id);
    if (!element || shown.get(id) === html) continue;
    shown.set(id, html);
    const draft = document.createElement("template");
    draft.innerHTML = html;
    morphChildren(element, draft.content);
    element.dispatchEvent(new CustomEvent("morphed", { bubbles: true }));
  }
}

/** Follow a live view until it is over. */
export function follow(address, changed) {
  const shown = new Map();
  let source = null;
  let over = false;
  let later = 0;
  let answered = true;

  function open() {
    source = new EventSource(address);
    source.addEventListener("view", (event) => {
      show(JSON.parse(event.data), shown);
      state.textContent = "Live.";
      changed();
    });
    source.addEventListener("trouble", (event) => {
      const { text, seconds } = JSON.parse(event.data);
      state.textContent = `Could not be read: ${text}. Trying again in ${Math.round(seconds)} s.`;
    });
    source.addEventListener("over", () => {
      over = true;
      source.close();
      state.textContent = "Ended: nothing here changes any more.";
    });
    source.addEventListener("open", () => { answered = true; });
    source.addEventListener("error", (event) => {
      if (over) return;
      // A browser asks again by itself if a connection breaks or ends, but not after an answer such as 429 or 503.
      const lost = event.target.readyState === EventSource.CLOSED;
      if (lost) {
        source = null;
        state.textContent = `The console does not answer. Is it still running? Trying again in ${AGAIN_SECONDS} s.`;
        clearTimeout(later);
        later = setTimeout(look, AGAIN_SECONDS * 1000);
      } else if (!answered) {
        state.textContent = "The console does not answer. Is it still running? Trying again.";
      }
      answered = false;
    });
  }

  function close() {
    source?.close();
    source = null;
  }

  function look() {
    if (over) return;
    if (document.hidden) close();
    else if (!source) open();
  }

  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", close);
  addEventListener("pageshow", look); // a browser may keep the page that somebody leaves, and show it again
  look();
}
