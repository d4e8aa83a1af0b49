/**
 * Fit this page into an outer page: use its light or dark theme, and tell it the height.
 *
 * The two pages exchange messages, because a page opened from a folder may not access
 * another page. This page sends {greenfold: "here"} once, and {greenfold: "height", height}
 * whenever its height changes; the outer page answers {greenfold: "theme", theme}. Without
 * an answer, the page stays as it is on its own.
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
