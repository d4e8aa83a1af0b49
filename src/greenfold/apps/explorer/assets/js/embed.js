/**
 * Inside another page: its light or dark, and all of the height that is needed.
 *
 * The two pages talk by messages, because a page that was opened from a folder may not look
 * into another one. This one says {greenfold: "here"} once, and {greenfold: "height", height}
 * whenever that changes; the outer page answers {greenfold: "theme", theme}. Where nobody
 * answers, the page stays as it is on its own.
 */
export function fitIn(outer, page) {
  if (outer === window) return;
  const root = document.documentElement;
  addEventListener("message", ({ source, data }) => {
    if (source !== outer || data?.greenfold !== "theme") return;
    if (data.theme === "light" || data.theme === "dark") root.dataset.theme = data.theme;
    else delete root.dataset.theme;
    if (root.classList.contains("embedded")) return;
    root.classList.add("embedded");
    new ResizeObserver(() => {
      outer.postMessage({ greenfold: "height", height: page.offsetHeight }, "*");
    }).observe(page);
  });
  outer.postMessage({ greenfold: "here" }, "*");
}
