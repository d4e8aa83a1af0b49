// The page that is shown is in sight in the list of pages. The theme restores how far the
// list was scrolled on the page before, which may be elsewhere.
addEventListener("load", () => {
  const list = document.querySelector(".bd-sidebar-primary");
  const here = list?.querySelector("nav.bd-docs-nav .current.active > a");
  if (!here) return;
  const [inner, outer] = [here, list].map((one) => one.getBoundingClientRect());
  if (inner.top < outer.top || inner.bottom > outer.bottom) {
    list.scrollTop += inner.top - outer.top - outer.height / 2;
  }
});
