"""`greenfold mask`: solve for a mask on the recording of a device."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._base.messages import listed
from . import options, show
from .options import Answer, Labelled, arg, command, group, opt, pick

if TYPE_CHECKING:
    import numpy as np

    from ..devices.device import Device
    from ..devices.masks import Mask
    from ..devices.response import FitReport, MeasuredResponse

#: Smallest penalty of a readout, relative to the power of the response.
_LEAST = 1e-6
#: If the share of linear variance is smaller, masks are worse than estimated.
_LINEAR = 0.8
#: Loss of accuracy, against the best random mask, that is told.
_BEHIND = 0.01


@group("Device")
class Recorded:
    """How the recordings of the device are read and fitted.

    drive : Columns of the inputs, or patterns ('in*'); by default columns called drive_0,
        input_0, u_0 …
    states : Columns of the outputs, or patterns ('x*'); by default columns called state_0,
        output_0, y_0 …
    trigger : Column of a trigger; only the samples at which it rises are kept.
    more : Another recording of the same device. Repeat the option for several.
    lags : Memory of the device in steps, or several numbers to choose from; chosen by
        cross-validation by default.
    """

    drive: Any = opt(None, **options.WORDS)
    states: Any = opt(None, **options.WORDS)
    trigger: str | None = opt(None)
    more: list[Path] | None = opt()
    lags: Any = opt(None, **options.COUNTS, sets="n_lags")

    def read(self, first: Path) -> list[Any]:
        """Return the recordings, which must have the same columns."""
        from ..datasets import DataError
        from ..datasets.recordings import read_recording

        paths = [first, *(self.more or ())]
        how = {"drive": self.drive, "states": self.states, "trigger": self.trigger}
        # The channels of one recording may be in several files: drive.npy,states.npy.
        files = [[one] if one.exists() else str(one).split(",") for one in paths]
        found = [read_recording(one, **how) for one in files]
        names = [(one.drive_names, one.state_names) for one in found]
        for path, own in zip(paths, names, strict=True):
            if own != names[0]:
                other = f"the channels of `{path}` differ from those of `{first}`"
                raise DataError(f"{other}; record the same columns, in the same order.")
        return found


def _mask(text: str) -> "Mask | str":
    """Return a mask, or 'free' for any entries."""
    from ..devices.masks import Mask

    return text if text == "free" else Mask.of(text)


_KINDS = "sign, nonnegative, levels=…, box=LOW,HIGH, at-most=K or free"


@group("Mask")
class Hardware:
    """Constraints of the device.

    mask : sign for entries ±1, nonnegative, levels=4 for this number of levels whose values
        are solved, levels=-1,0,1 for given levels, box=0,0.2 for a range of the entries of
        unit norm, at-most=10 to drive so few inputs, or free for any entries.
    noise : Standard deviation of readout noise that the recording does not contain, on
        every output, in the unit of the outputs.
    input_noise : Standard deviation of the noise on every value of the series, after
        scaling.
    range : Smallest and largest drive of an input, such as 0,1; the mask file then holds
        the offset of each input, too.
    """

    mask: Any = opt("sign", **options.reader(_mask, "KIND", _KINDS))
    noise: float = opt(0.0, "Device", min=0, sets="readout_noise")
    input_noise: float = opt(0.0, "Device", min=0)
    range: Any = opt(
        None,
        "Device",
        **options.reader(
            options.several(float),
            "LOW,HIGH",
            "two rising numbers such as 0,1",
            lambda ends: len(ends) == 2 and ends[0] < ends[1],
        ),
        sets="drive_range",
    )

    def device(self) -> "Device":
        """Return the constraints as a `Device`."""
        from ..devices.device import Device

        return Device(
            mask=None if self.mask == "free" else self.mask,
            input_noise=self.input_noise or None,
            readout_noise=self.noise or None,
            drive_range=self.range,
        )


@command(
    "greenfold mask loop.csv ECG5000 --classes 1,2 --mask sign --out mask.csv --report "
    "page.html"
)
def mask(
    recording: Path = arg(..., "RECORDING"),
    data: str = options.DATA,
    hardware: Hardware = Hardware(),
    eta: float | str = opt("10", "Mask", **options.number_or("cv")),
    recorded: Recorded = Recorded(),
    out: Path | None = opt(None, options.MAIN, "-o"),
    readout: Path | None = opt(None, options.MAIN),
    report: Path | None = options.REPORT,
    replicates: int = opt(24, "Mask", min=10),
    draws: int = opt(20, "Mask", min=1),
    seed: int = options.seed("Seed for the random masks and the parts of the recording."),
    reading: Labelled = Labelled(),
) -> Answer:
    """Solve for the input mask of a device, from a recording of the device.

    Feed white noise into the inputs of the device, record its outputs, and give both with
    the labelled series. The command solves for the mask on the recording and reports its κ
    as a share of a proven bound. It uses the training series of a data set. More than two
    classes get one mask and a ridge readout for each class; --classes names two of them.

    recording : Random drive and outputs of the device, one column per channel: .csv, .npz,
        .npy, .mat, .h5, .tdms or .parquet; or several files with commas between them.
    eta : Weight η of the variance in the soft margin κ, or 'cv' to choose it by
        cross-validation; evaluate has the same default, so that you can compare κ.
    out : Write the mask to this CSV file.
    readout : Write the weights of the outputs to this CSV file.
    replicates : Number of parts of the recording to hold out in turn, for the interval.
    draws : Number of random masks to compare with.
    """
    import numpy as np

    from ..analysis.eta import choose_eta
    from ..analysis.masks import MaskStudy, study_mask
    from ..devices.response import MeasuredResponse
    from ..optimizers.result import Projections
    from ..stimuli.samples import SampleStimuli

    options.check_targets(out=out, readout=readout, report=report)
    allowed = hardware.device()
    with options.progress(5.0 + bool(report)) as step:
        step("reading the recording")
        parts = recorded.read(recording)
        first = parts[0]
        _within(hardware.range, [one.drive for one in parts])
        step("reading the data")
        X, labels, name = _labelled(data, reading, seed)
        two = len(np.unique(labels)) == 2
        step("fitting the response")
        recordings = ([one.drive for one in parts], [one.states for one in parts])
        how = {"n_steps": X.shape[-1], "dt": first.dt or 1.0, "n_lags": recorded.lags}
        device = MeasuredResponse.fit(*recordings, **how)
        stimuli: Any = None
        unit = 1.0
        if two:
            stimuli = SampleStimuli(X, labels)
        else:
            why = "is for two classes; several are told apart by ridge regression"
            options.invocation.refuse(why, "eta", "input_noise", "report")
            stimuli, unit = _task(X, labels, device, hardware.noise)
        if isinstance(eta, str):  # cv
            eta = choose_eta(device, X, labels, noise=hardware.noise, rng=seed).best
        step("solving for the mask", 2.0)
        how = {"n_draws": draws, "n_replicates": replicates, "rng": seed}
        study = study_mask(device, stimuli, eta if two else None, device=allowed, **how)
        encoded = None
        if hardware.range is not None:
            scaled: Any = stimuli
            played = (
                scaled.transform(X)
                if two
                else scaled.X - scaled.mean.reshape(scaled.X.shape[1:])
            )
            encoded = allowed.encode(study.values, played)
        if out:
            own = None if encoded is None else encoded.offset
            _write_weights(out, "input", first.drive_names, study.values, own)
        if readout:
            found = study.projections
            weights = found.v if isinstance(found, Projections) else found.V
            _write_weights(readout, "output", first.state_names, weights)
        rows, notes = _rows(study, device, stimuli, unit), _notes(study, device)
        notes += show.uncertain(labels) if study.accuracy is not None else []
        if encoded is not None:
            product = f"{encoded.gain:.4g} × scaled series × mask"
            rows["drive in the range"] = f"offset of each input + at most {product}"
        if report:
            step("writing the page")
            from ..apps.report.page import write_mask_page  # needs matplotlib

            assert isinstance(study, MaskStudy)

            how = {"name": f"A mask for {name} on {recording.name}", "notes": notes}
            how |= {"inputs": first.drive_names, "command": options.invocation.line()}
            write_mask_page(report, study, device, rows=list(rows.items()), **how)
    files = {"mask_file": out, "readout_file": readout, "report": report}
    record = {
        "data": name,
        "recording": recording,
        **_record(study, device, stimuli, np.unique(labels), unit),
        "encoding": encoded and pick(encoded, "gain", "offset"),
    }

    written = {k.replace("_", " "): v and v.absolute() for k, v in files.items()}
    return Answer(record | files, lambda: show.facts(rows | written, notes))


def _within(wanted: Any, drives: "Sequence[np.ndarray]") -> None:
    """Refuse a range of the drive that the recording says nothing about."""
    if wanted is not None:
        low = min(float(one.min()) for one in drives)
        high = max(float(one.max()) for one in drives)
        slack = 0.05 * (high - low)
        outside = wanted[0] < low - slack or wanted[1] > high + slack
        seen = f"the recorded drive, which lies between {low:.3g} and {high:.3g}"
        cure = "record a drive in this range, or name a range within the recorded one"
        options.refuse_if(outside, f"--range reaches beyond {seen}; {cure}")


def _labelled(data: str, reading: Labelled, seed: int) -> tuple[Any, Any, str]:
    """Return series of one length, labels of several classes, and their name."""
    import numpy as np

    from ..datasets import DataError
    from .inputs import load_series, title_of

    X, y = load_series(data, reading, y=reading.y, seed=seed)
    name = title_of(data, reading.classes)
    if isinstance(X, list):
        why = "a mask needs one readout time, so cut or pad them to one length"
        raise DataError(f"`{name}` has series of different lengths; {why}.")
    X, y = np.asarray(X), np.asarray(y).astype(str)
    known = np.unique(y).tolist()
    if len(known) < 2:
        raise DataError(f"`{name}` has one class ({listed(known)}); add series of others.")
    return X, y, name


def _task(
    X: "np.ndarray", labels: "np.ndarray", device: "MeasuredResponse", added: float
) -> Any:
    """Return the regression of one target per class, and the unit of its series.

    The noise of the readout is that of the recording and what is ``added``, for series that
    are played as strongly.
    """
    import numpy as np

    from ..stimuli.regression import RegressionTask

    fitted = device.fitted
    assert fitted is not None
    series = X.reshape(len(X), -1, X.shape[-1])
    spread = series - series.mean(0)
    unit = float(np.sqrt((spread**2).sum(1).mean())) or 1.0
    strength = np.sqrt((fitted.drive_size**2).sum())
    noise = (float(np.diag(fitted.surrogate.noise).mean()) + added**2) / strength**2
    least = _LEAST * float((device.G**2).sum(0).mean())
    targets = (labels[:, None] == np.unique(labels)).astype(float)
    task = RegressionTask.from_cases(series / unit, targets, ridge=max(noise, least))
    return task, unit


def _write_weights(
    path: Path,
    what: str,
    names: Sequence[str],
    values: "np.ndarray",
    offset: "np.ndarray | None" = None,
) -> None:
    """Write a CSV table with one row per input or output of the device."""
    from .._base.files import write_csv

    rows = values.reshape(len(names), -1).tolist()
    several = len(rows[0]) > 1
    columns = [f"channel_{c}" for c in range(len(rows[0]))] if several else ["weight"]
    if offset is not None:
        columns.append("offset")
        rows = [[*row, one] for row, one in zip(rows, offset.tolist(), strict=True)]
    lines = [[name, *row] for name, row in zip(names, rows, strict=True)]
    write_csv(path.expanduser(), [[what, *columns], *lines])


def device_row(n_inputs: int, n_outputs: int, fitted: "FitReport") -> str:
    """Return the size of a device, and of the fit to its recording."""
    whats = ("input", "output", "sample", "lag")
    sizes = (n_inputs, n_outputs, fitted.n_samples, fitted.n_lags)
    told = list(map(show.counted, sizes, whats))
    return f"{', '.join(told[:2])}; {', '.join(told[2:])}"


def _rows(
    study: Any,
    device: "MeasuredResponse",
    stimuli: Any,
    unit: float,
) -> dict[str, str]:
    """Return the names and values of the table."""
    best: Any = study.projections
    fitted = device.fitted
    assert fitted is not None
    shares, n_channels = fitted.shares.causes, stimuli.n_channels
    bound = f"{best.upper_bound:.5g} on the estimated response"
    if best.share is not None and math.isfinite(best.share):
        bound += f"; the mask reaches {best.share:.1%} of it"
    drawn = f"{float(study.random.std()):.2g} ({len(study.random)} draws)"
    n_values = len({f"{one:.9g}" for one in study.random.tolist()})
    if n_values < len(study.random):  # a few inputs have few masks
        drawn = f"{drawn[:-1]}; only {n_values} differ)"
    rows = {
        "device": device_row(device.n_inputs, device.n_outputs, fitted),
        "linearity": f"{fitted.linearity:.1%} of the held-out variance; "
        + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()),
        "series": ", ".join(
            map(show.counted, (stimuli.n_steps, n_channels), ("step", "channel"))
        ),
        "kind of mask": f"{best.mask or 'free'}: {best.message}",
    }
    interval = getattr(study, "interval", None)
    if interval is None:
        return {
            **rows,
            "classes": f"{stimuli.n_targets}, with one mask and a readout each",
            "explained variance": f"{best.gain:.5g} of {best.gain + best.loss:.5g}",
            "proven bound": bound,
            "random masks explain": f"{float(study.random.mean()):.5g} ± {drawn}",
            **_accuracies(study, f"(series − mean) × {1 / unit:.4g}"),
        }
    return {
        **rows,
        "η": f"{best.eta:.4g}",
        "expected κ": f"{interval.estimate:.5g}, "
        + (
            f"{interval.level:.0%} interval {interval.low:.5g} to {interval.high:.5g}"
            if interval.is_known
            else "without an interval, as the device is not linear enough"
        ),
        "κ as estimated": f"{best.soft_margin:.5g}",
        "proven bound": bound,
        "κ of a random mask": f"{float(study.random.mean()):.5g} ± {drawn}",
        "expected gain": "none within the interval"
        if study.gain is None
        else f"×{study.gain:.2f}, at least ×{interval.low / study.random_margin:.2f}",
        **_accuracies(study, f"(series − centre) × {stimuli.scale:.4g}"),
    }


def _strength(study: Any) -> float:
    """Return the factor of the series for the mask as it is written."""
    return study.accuracy.amplitude / float((study.values**2).sum()) ** 0.5


def _accuracies(study: Any, scaled: str) -> dict[str, str]:
    found = study.accuracy
    if found is None:
        return {"scaled series": scaled}
    random = f"{found.random.mean():.1%} random masks on average"
    best = f"{found.best:.1%} the best of {len(found.random)}"
    largest = f"{found.chance:.1%} by naming the largest class"
    return {
        "expected accuracy": f"{found.solved:.1%} solved, {random}, {best}, {largest}",
        "strength of drive": f"{_strength(study):.3g} × scaled series × mask",
        "scaled series": f"{scaled}; --json has all numbers",
    }


def _notes(study: Any, device: "MeasuredResponse") -> list[str]:
    fitted, found = device.fitted, study.accuracy
    assert fitted is not None
    linear, one_input = fitted.linearity, device.n_inputs == 1
    interval, several = getattr(study, "interval", None), not one_input
    known = interval is None or interval.is_known
    overlaps = known and interval is not None and interval.low < float(study.random.mean())
    behind = found is not None and found.solved < found.best - _BEHIND
    told = (
        (
            linear < _LINEAR or not known,
            f"Only {linear:.1%} of the output is a linear response to the drive. "
            f"{fitted.next_recording().advice}",
        ),
        (
            overlaps and several,
            "The interval includes random masks: record longer to tell them apart.",
        ),
        (
            found is not None
            and max(found.solved, found.best) <= found.chance + 2 * found.error,
            "No mask is expected to tell the classes apart: naming the largest class is "
            "as accurate.",
        ),
        (
            several and behind,
            "A solved mask will not pay: the best random mask is expected to be more "
            "accurate.",
        ),
        (
            several and found is not None and not (behind or found.is_known),
            "Whether the solved mask pays is not known: more than 2 % of the variance of "
            "the outputs is non-linear. Drive the device more weakly.",
        ),
        (
            several and found is not None and found.is_known and not (behind or found.pays),
            "Do not count on the solved mask to pay: the best random mask is expected to "
            "be as accurate, within the error of the estimate.",
        ),
        (
            one_input,
            "A device with one input has only one mask, up to its sign: use virtual nodes. "
            "Hold each value of a series over several steps, multiply them by the mask, "
            "and record each of these steps as a separate input.",
        ),
    )
    return [sentence for holds, sentence in told if holds]


#: What is told of the accuracy.
_ACCURACY = ("solved", "random", "best", "chance", "error", "pays")


def _record(
    study: Any,
    device: "MeasuredResponse",
    stimuli: Any,
    classes: "np.ndarray",
    unit: float,
) -> dict[str, Any]:
    best: Any = study.projections
    interval, found = getattr(study, "interval", None), study.accuracy
    record = {
        **pick(device, "n_inputs", "n_outputs", "n_steps"),
        "n_channels": stimuli.n_channels,
        "classes": classes,
        **pick(device.fitted, "n_samples", "n_lags", "linearity"),
        "kind": best.mask or "free",
        **pick(best, "status", "upper_bound", "share"),
        "accuracy": found and {**pick(found, *_ACCURACY), "amplitude": _strength(study)},
        "mask": study.values,
    }
    if interval is None:
        centre = unit * stimuli.mean.reshape(stimuli.n_channels, -1)
        own = {"centre": centre, "scale": 1 / unit, **pick(best, "gain", "loss", "r2")}
        random = {"mean": float(study.random.mean()), "gains": study.random}
        return {**record, **own, "random": random, "readout": best.V}
    known = interval.is_known
    return {
        **record,
        **pick(stimuli, "centre", "scale"),
        **pick(best, "eta", "soft_margin"),
        "expected": {
            "soft_margin": interval.estimate,
            **{end: getattr(interval, end) if known else None for end in ("low", "high")},
            **pick(interval, "level", "optimism"),
        },
        "noise_cost": best.noise_cost,
        "random": {"mean": float(study.random.mean()), "soft_margins": study.random},
        "gain": study.gain,
        "readout": best.v,
    }
