"""`greenfold recording`: look at the recording of a device, and plan the next one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import options, show
from .mask import Recorded, device_row
from .options import Answer, arg, command, opt, pick

if TYPE_CHECKING:
    from ..datasets.recordings import Recording
    from ..devices.response import FitReport

#: Largest number of lags to fit, and samples per unknown that the default asks for.
_LAGS, _SAMPLES = 64, 4
_SHARES = "linear", "noise", "drift", "even", "odd", "memory", "error", "repeated"


@command("greenfold recording loop.csv --next drive.csv --bits 12")
def recording(
    recording: Path = arg(..., "RECORDING"),
    recorded: Recorded = Recorded(),
    out: Path | None = opt(None, options.MAIN, "-o"),
    next: Path | None = opt(None, options.MAIN),
    bits: int | None = opt(None, "Next recording", min=1, max=24),
    positive: bool = opt(False, "Next recording"),
    seed: int = options.seed("Seed of the next drive.", "Next recording"),
) -> Answer:
    """Look at the recording of a device: its causes of error, and what to record next.

    The command needs no task. It separates the variance of the outputs into the linear
    response to the drive, noise, drift, non-linearity and memory beyond the lags, and
    says which recording would improve the response. Its shares can differ from those of
    mask, which chooses the number of lags by the length of the series.

    recording : Random drive and outputs of the device, as for mask.
    out : Draw the response by lag, the rest over time and the curvature to this file: .svg,
        .png or .pdf.
    next : Write the drive of the next recording to this CSV file.
    bits : Number of bits of the converter, for --next.
    positive : Shift the drive so that it is never negative, for --next.
    """
    from .._base.files import write_csv
    from ..devices.response import MeasuredResponse

    options.check_targets(out=out, next=next)
    if next is None:
        options.invocation.refuse("is for the next drive; it needs --next", "bits", "seed")
        options.refuse_if(positive, "--positive is for the next drive; it needs --next")
    if out is not None:
        options.need("matplotlib")
    with options.progress(2.0 + bool(out)) as step:
        step("reading the recording")
        parts = recorded.read(recording)
        first = parts[0]
        step("fitting the response")
        n = sum(len(one.drive) for one in parts) // (_SAMPLES * first.drive.shape[1])
        most = max(1, min(n, _LAGS, min(len(one.drive) for one in parts) // 4))
        lags = recorded.lags or [2**k for k in range(most.bit_length())]
        both = [one.drive for one in parts], [one.states for one in parts]
        how: dict[str, Any] = {"n_steps": max(lags), "n_lags": lags, "dt": first.dt or 1.0}
        response = MeasuredResponse.fit(*both, **how)
        fitted = response.fitted
        assert fitted is not None
        planned = fitted.next_recording()
        if next is not None:
            made = planned.drive(bits=bits, positive=positive, rng=seed)
            rows = [[f"{one:.9g}" for one in row] for row in made.tolist()]
            write_csv(next.expanduser(), [list(first.drive_names), *rows])
        if out is not None:
            step("drawing the picture")
            from ..apps.recording import draw_recording  # needs matplotlib

            draw_recording(out, response, first.drive, first.states)
    record = {
        **pick(response, "n_inputs", "n_outputs"),
        **pick(fitted, "n_samples", "n_lags", "linearity"),
        "shares": pick(fitted.shares, *_SHARES),
        "largest": fitted.shares.largest,
        "next": pick(planned, "advice", "factor", "n_samples", "n_reference", "n_lags"),
        "drive_file": next,
        "picture": out,
    }
    return Answer(record, lambda: _show(first, fitted, record))


def _show(first: "Recording", fitted: "FitReport", record: dict[str, Any]) -> None:
    found, planned = fitted.shares, record["next"]
    curved = f"{found.even:.1%} even, {found.odd:.1%} odd"
    how = (
        f"measured on {found.repeated} repeated samples" if found.repeated else "estimated"
    )
    rows: dict[str, Any] = {
        "device": device_row(record["n_inputs"], record["n_outputs"], fitted),
        "linear response": f"{found.linear:.1%} of the variance of the outputs",
        "noise": f"{found.noise:.1%} ({how})",
        "drift": f"{found.drift:.1%} (removed from the fit)" if found.drift else "0.0%",
        "non-linearity": f"{found.nonlinearity:.1%} ± {2 * found.error:.1%} ({curved})",
        "memory beyond the lags": f"{found.memory:.1%}",
        "next recording": f"{planned['factor']:.2g} times the drive, "
        f"{planned['n_samples']} samples",
        "reference segment": f"{planned['n_reference']} samples, ten times"
        if planned["n_reference"]
        else None,
        "drive file": record["drive_file"] and record["drive_file"].absolute(),
        "picture": record["picture"] and record["picture"].absolute(),
    }
    show.facts(rows, [planned["advice"]])
