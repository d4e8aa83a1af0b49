/* The page around an explorer: tells it whether the page is light or dark, as it begins and
   whenever the reader switches, and gives it the height it asks for. */
(() => {
  const root = document.documentElement;
  const frames = () => [...document.querySelectorAll("iframe.explorer")];
  const tell = (frame) => {
    const { theme } = root.dataset;
    frame.contentWindow.postMessage({ greenfold: "theme", theme }, "*");
  };
  addEventListener("message", ({ source, data }) => {
    const frame = frames().find((one) => one.contentWindow === source);
    if (!frame) return;
    if (data?.greenfold === "here") tell(frame);
    if (data?.greenfold === "height" && data.height > 0) {
      frame.style.height = `${data.height + 8}px`;
    }
  });
  new MutationObserver(() => frames().forEach(tell))
    .observe(root, { attributeFilter: ["data-theme"] });
})();
