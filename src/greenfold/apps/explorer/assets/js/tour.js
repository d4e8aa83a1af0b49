// A tour in three steps: what u, κ and η are, each said where it is seen.

const STOPS = [
  [".ring-box", "u, the input projection, is how strongly the input drives each neuron: " +
    "drag a bar outwards for plus, inwards for minus."],
  ["#gauge", "κ, the soft margin, is the mean distance of the states from the separating " +
    "plane, minus η/2 times their variance: the larger, the better the classes are separated."],
  ["#eta-row", "η is how much the variance counts in κ: a small η asks for distant class " +
    "means, a large one for narrow classes."],
];

/** Begin the tour; it moves to what it explains, and the keyboard's focus with it. */
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
