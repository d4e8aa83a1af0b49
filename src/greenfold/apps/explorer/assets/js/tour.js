// A tour in three steps that explains u, κ and η, each next to where it is shown.

const STOPS = [
  [".ring-box", "The input projection u sets how strongly the input drives each neuron. " +
    "Drag a bar outwards for a positive value, inwards for a negative value."],
  ["#gauge", "The soft margin κ is the mean distance of the states from the separating " +
    "plane, minus η/2 times their variance. A larger κ means better separated classes."],
  ["#eta-row", "η sets how much the variance counts in κ. A small η favours distant class " +
    "means, a large η favours narrow classes."],
];

/** Begin the tour; it and the keyboard's focus move to each element that it explains. */
export function beginTour() {
  const [tour, said, next, close] = ["tour", "tour-said", "tour-next", "tour-close"].map(
    (name) => document.getElementById(name),
  );
  let step = 0;
  const show = () => {
    const [place, text] = STOPS[step];
    said.textContent = `${step + 1} of ${STOPS.length}: ${text}`;
    next.textContent = step + 1 < STOPS.length ? "Next" : "Done";
    document.querySelector(place).before(tour);
    tour.hidden = false;
  };
  const end = () => (tour.hidden = true);
  next.addEventListener("click", () => {
    step += 1;
    if (step === STOPS.length) {
      end();
      return;
    }
    show();
    next.focus();
  });
  close.addEventListener("click", end);
  tour.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
  });
  show();
}
