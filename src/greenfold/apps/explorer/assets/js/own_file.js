// The user's own file, read in the browser: one series per line, class first.

const MOST_SERIES = 300;

/**
 * Return a data set from text, or throw an error that says what is wrong.
 *
 * @param {string} text Values separated by commas, semicolons, tabs or spaces.
 * @param {number} steps Steps of the network; series are averaged or stretched to them.
 */
export function setFromText(name, text, steps) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() && !/^[#@%]/.test(line));
  const rows = lines.map((line) => line.trim().split(/\s*[,;\t]\s*|\s+/));
  if (rows.length && rows[0].slice(1).some((x) => Number.isNaN(Number(x)))) rows.shift();
  if (rows.length < 4) throw new Error(`${name} holds fewer than four series.`);
  const labels = rows.map((row) => row[0].replace(/^["']|["']$/g, ""));
  const classes = [...new Set(labels)].sort();
  const counts = classes.map((one) => labels.filter((label) => label === one).length);
  if (counts.filter((count) => count > 1).length < 2 || classes.length > 20) {
    throw new Error(
      `${name} must hold 2 to 20 classes of at least two series, named in the first ` +
        `column; ${classes.length} were found.`,
    );
  }
  const values = rows.map((row, i) => {
    const found = row.slice(1).map(Number);
    if (!found.length || !found.every(Number.isFinite)) {
      throw new Error(`Series ${i + 1} of ${name} holds a value that is not a number.`);
    }
    return found;
  });
  const lengths = values.map((row) => row.length);
  const longest = Math.max(...lengths);
  const thinned = [];
  if (Math.min(...lengths) < longest) {
    thinned.push("Shorter series are filled with their first value at the beginning.");
  }
  if (longest !== steps) {
    const what = longest > steps ? "averaged" : "stretched";
    thinned.push(`${longest} steps of each series were ${what} to ${steps}.`);
  }
  const every = Math.max(1, Math.ceil(values.length / MOST_SERIES));
  const kept = values.map((_, i) => i).filter((i) => i % every === 0);
  if (every > 1) thinned.push(`${kept.length} of ${values.length} series are used.`);
  const X = new Float64Array(kept.length * steps);
  kept.forEach((i, at) => {
    const late = Array(longest - lengths[i]).fill(values[i][0]);
    X.set(resampled([...late, ...values[i]], steps), at * steps);
  });
  const codes = Float64Array.from(kept, (i) => classes.indexOf(labels[i]));
  const seen = classes.map((_, c) => codes.filter((code) => code === c).length);
  const pairs = [];
  for (let a = 0; a < classes.length; a++) {
    for (let b = a + 1; b < classes.length; b++) {
      if (seen[a] > 1 && seen[b] > 1) pairs.push([a, b]);
    }
  }
  if (!pairs.length) throw new Error(`${name} has too few series per class.`);
  const train = { X, codes };
  return {
    name,
    note: "Read in your browser; nothing was sent.",
    thinned,
    classes,
    weights: classes.map(() => 1),
    channels: 1,
    scaling: 1,
    pairs,
    solved: [],
    size: steps,
    steps,
    judged: "training",
    train,
    test: train,
    own: true,
  };
}

/** Return means over equal intervals of a series that is constant over its steps. */
function resampled(series, steps) {
  const old = series.length;
  const upTo = [0];
  for (const value of series) upTo.push(upTo.at(-1) + value);
  const area = (t) => {
    const whole = Math.min(Math.floor(t), old - 1);
    return upTo[whole] + (t - whole) * series[whole];
  };
  return Array.from({ length: steps }, (_, k) => {
    const [from, to] = [(k * old) / steps, ((k + 1) * old) / steps];
    return ((area(to) - area(from)) * steps) / old;
  });
}
