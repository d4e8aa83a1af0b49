// A tour in four steps that explains u, κ, Solve and η beside the pictures they change.

// Where the tour stands, what it outlines, and its text. It stays beside the pictures, so
// that they remain in view.
const STOPS = [
  [".ring-box", ".ring-box", "The input projection u sets how strongly the input drives each neuron. " +
    "Drag a bar outwards for a positive value, inwards for a negative value."],
  ["#gauge", "#gauge", "The soft margin κ is the mean distance of the states from the separating " +
    "plane, minus η/2 times their variance. A larger κ means better separated classes."],
  [".ring-box", "#solve", "Press Solve: u turns to the one with the largest κ. Compare it with " +
    "Random, or press Climb to watch a gradient ascent."],
  ["#gauge", "#eta-row", "The slider η, the last of the controls, sets how much the variance counts in κ. A small η " +
    "favours distant class means, a large η favours narrow classes."],
];

/** Begin the tour; it and the keyboard's focus move to each element that it explains. */
export function beginTour() {
  const [tour, said, next, close] = ["tour", "tour-said", "tour-next", "tour-close"].map(
    (name) => document.getElementById(name),
  );
  let step = 0;
  const unmark = () => document.querySelector(".toured")?.classList.remove("toured");
  const show = () => {
    const [place, meant, text] = STOPS[step];
    unmark();
    document.querySelector(meant).classList.add("toured");
    said.textContent = `${step + 1} of ${STOPS.length}: ${text}`;
    next.textContent = step + 1 < STOPS.length ? "Next" : "Done";
    document.querySelector(place).before(tour);
    tour.hidden = false;
  };
  const end = () => {
    unmark();
    tour.hidden = true;
  };
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
