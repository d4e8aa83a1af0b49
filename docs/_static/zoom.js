// On phones, a tap on a figure enlarges it, and another one makes it fit the screen again.
document.addEventListener("click", ({ target }) => {
  const image = target.closest(".bd-article figure img, .bd-article .cell_output img");
  if (!image || image.closest("a") || !matchMedia("(max-width: 600px)").matches) return;
  image.closest("figure, .cell_output").classList.toggle("enlarged");
});
