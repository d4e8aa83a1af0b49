"""`greenfold mask`: from the recording of a device to the mask it should be given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import Data, DataDir, Debug, Format, Json, LabelFile, Report, Seed, Trim

_DEVICE = "Device"
_MASK = "Mask"
#: Below this share of linear variance the masks are worth less than they look.
_LINEAR = 0.8


def mask(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING",
            help="Random drive and outputs of the device, a column a channel: .csv, "
            ".npz or .parquet.",
        ),
    ],
    data: Data,
    kind: Annotated[
        str | None,
        typer.Option(
            "--mask",
            metavar="sign|nonnegative|free",
            help="Entries ±1, none below zero, or any. sign by default.",
            rich_help_panel=_MASK,
            show_default=False,
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            "--levels",
            metavar="K|A,B[,…]",
            help="Instead: so many levels, whose sizes are solved too, or given values.",
            rich_help_panel=_MASK,
        ),
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(
            "--box",
            metavar="LOW,HIGH",
            help="Instead: a range for the entries of the mask, which has unit norm.",
            rich_help_panel=_MASK,
        ),
    ] = None,
    eta: Annotated[
        str,
        typer.Option(
            "--eta",
            help="Control parameter η of the soft margin, or 'cv': chosen by "
            "cross-validation.",
            rich_help_panel=_MASK,
        ),
    ] = "10",
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            min=0,
            help="Standard deviation of the noise on every output as it is read, in the "
            "unit of the outputs.",
            rich_help_panel=_DEVICE,
        ),
    ] = 0.0,
    input_noise: Annotated[
        float,
        typer.Option(
            "--input-noise",
            min=0,
            help="Standard deviation of the noise on every value of the series, after "
            "scaling.",
            rich_help_panel=_DEVICE,
        ),
    ] = 0.0,
    drive: Annotated[
        str | None,
        typer.Option(
            "--drive",
            metavar="A,B[,…]",
            help="Columns of the inputs; by default those called drive_0, input_0, u_0 …",
            rich_help_panel=_DEVICE,
        ),
    ] = None,
    states: Annotated[
        str | None,
        typer.Option(
            "--states",
            metavar="A,B[,…]",
            help="Columns of the outputs; by default those called state_0, output_0, y_0 …",
            rich_help_panel=_DEVICE,
        ),
    ] = None,
    more: Annotated[
        list[Path] | None,
        typer.Option(
            "--more",
            help="A further recording of the same device; may be given several times.",
            rich_help_panel=_DEVICE,
        ),
    ] = None,
    lags: Annotated[
        str | None,
        typer.Option(
            "--lags",
            metavar="K[,…]",
            help="Memory of the device in steps, or numbers to choose from; by default "
            "cross-validated.",
            rich_help_panel=_DEVICE,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="A[,B]",
            help="Two classes to tell apart, or one against all others. Needed where there "
            "are more than two.",
            rich_help_panel="Data",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write the mask, a CSV file.", rich_help_panel="Output"
        ),
    ] = None,
    readout: Annotated[
        Path | None,
        typer.Option(
            "--readout",
            help="Write the weights of the outputs, a CSV file.",
            rich_help_panel="Output",
        ),
    ] = None,
    report: Report = None,
    replicates: Annotated[
        int,
        typer.Option(
            "--replicates",
            min=10,
            help="Replicates of the recording behind the interval.",
            rich_help_panel=_MASK,
        ),
    ] = 20,
    draws: Annotated[
        int,
        typer.Option(
            "--draws", min=1, help="Random masks to compare with.", rich_help_panel=_MASK
        ),
    ] = 20,
    seed: Seed = 0,
    data_dir: DataDir = None,
    trim: Trim = False,
    format: Format = None,
    y: LabelFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Solve for the mask of a device that is known by a recording.

    Feed white noise into its inputs, record its outputs, and give both with the labelled
    series. The mask is solved on what was measured, and said as a share of what no mask
    can exceed. The training series of a data set are used.
    """
    del debug
    from ..analysis.eta import choose_eta
    from ..analysis.masks import study_mask
    from ..devices.response import MeasuredResponse
    from ..stimuli.samples import SampleStimuli
    from . import device as reading

    for path, option in ((out, "--out"), (readout, "--readout"), (report, "--report")):
        options.check_target(path, option)
    hardware = reading.device_of(kind, levels, box, input_noise, noise)
    strength = options.number_or("cv", eta, "--eta")
    n_lags = None if lags is None else reading.whole_numbers(lags, "--lags")
    with options.progress(5.0 + bool(report)) as bar:
        bar.step("reading the recording")
        parts = reading.recordings([recording, *(more or [])], drive, states)
        bar.step("reading the data")
        X, labels, name = reading.two_classes(
            data, classes, data_dir=data_dir, trim=trim, seed=seed, form=format, labels=y
        )
        stimuli = SampleStimuli(X, labels)
        bar.step("fitting the response")
        device = MeasuredResponse.fit(
            [one.drive for one in parts],
            [one.states for one in parts],
            n_steps=stimuli.n_steps,
            dt=parts[0].dt or 1.0,
            n_lags=n_lags,
        )
        if isinstance(strength, str):
            choice = choose_eta(device, X, labels, noise=noise, rng=seed)
            strength = float(choice.best)
        bar.step("solving for the mask", 2.0)
        study = study_mask(
            device,
            stimuli,
            strength,
            device=hardware,
            n_draws=draws,
            n_replicates=replicates,
            rng=seed,
        )
        names = parts[0]
        if out:
            reading.write_weights(out, "input", names.drive_names, study.values)
        if readout:
            reading.write_weights(readout, "output", names.state_names, study.projections.v)
        rows, notes = _rows(study, device, stimuli), _notes(study, device)
        if report:
            bar.step("writing the page")
            from ..apps.report.page import write_mask_page

            write_mask_page(
                report,
                study,
                device,
                name=f"A mask for {name} on {recording.name}",
                rows=rows,
                inputs=names.drive_names,
                notes=notes,
                command=options.command_line(),
            )
    if json:
        record = _record(study, device, stimuli)
        files = {"mask_file": out, "readout_file": readout, "report": report}
        options.print_json({"data": name, "recording": recording, **record, **files})
        return
    from . import show

    written = [("mask file", out), ("readout file", readout), ("report", report)]
    show.facts([*rows, *((what, path.absolute()) for what, path in written if path)])
    for note in notes:
        print(note)


def _rows(study: Any, device: Any, stimuli: Any) -> list[tuple[str, str]]:
    """The table: names and values."""
    best, interval, fitted = study.projections, study.interval, device.fitted
    share = "–" if best.share is None else f"{best.share:.1%}"
    spread = float(study.drawn.std())
    return [
        (
            "device",
            f"{device.n_inputs} inputs, {device.n_outputs} outputs; {fitted.n_samples} "
            f"samples, {fitted.n_lags} lags",
        ),
        ("linearity", f"{fitted.linearity:.1%} of the held-out variance"),
        ("series", f"{stimuli.n_steps} steps, {_plural(stimuli.n_channels, 'channel')}"),
        ("kind of mask", f"{best.mask or 'free'}: {best.message}"),
        ("η", f"{best.eta:.4g}"),
        (
            "expected κ",
            f"{interval.estimate:.5g}, {interval.level:.0%} interval {interval.low:.5g} to "
            f"{interval.high:.5g}",
        ),
        ("κ as estimated", f"{best.soft_margin:.5g}"),
        ("proven bound", f"{best.upper_bound:.5g}, of which the mask reaches {share}"),
        (
            "κ of a random mask",
            f"{study.random_margin:.5g} ± {spread:.2g} ({len(study.drawn)} drawn)",
        ),
        ("expected gain", _gain(study)),
    ]


def _plural(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _gain(study: Any) -> str:
    if study.gain is not None:
        return f"×{study.gain:.2f}"
    return f"{study.interval.estimate - study.random_margin:+.3g} in κ"


def _notes(study: Any, device: Any) -> list[str]:
    found = []
    if device.fitted.linearity < _LINEAR:
        found.append(
            f"Only {device.fitted.linearity:.0%} of the outputs is a linear answer to the "
            "drive: drive the device more weakly, or record longer, before you trust κ."
        )
    if study.interval.low < study.random_margin:
        found.append(
            "The interval reaches down to random masks: a longer recording would tell."
        )
    return found


def _record(study: Any, device: Any, stimuli: Any) -> dict[str, Any]:
    best, interval = study.projections, study.interval
    return {
        "n_inputs": device.n_inputs,
        "n_outputs": device.n_outputs,
        "n_steps": device.n_steps,
        "n_channels": stimuli.n_channels,
        "classes": stimuli.classes,
        "centre": stimuli.centre,
        "scale": stimuli.scale,
        "n_samples": device.fitted.n_samples,
        "n_lags": device.fitted.n_lags,
        "linearity": device.fitted.linearity,
        "kind": best.mask or "free",
        "status": best.status,
        "eta": best.eta,
        "soft_margin": best.soft_margin,
        "upper_bound": best.upper_bound,
        "share": best.share,
        "expected": {
            "soft_margin": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "level": interval.level,
            "optimism": interval.optimism,
        },
        "noise_cost": best.noise_cost,
        "random": {"mean": study.random_margin, "soft_margins": study.drawn},
        "gain": study.gain,
        "mask": study.values,
        "readout": best.v,
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: [bold]greenfold mask loop.csv ECG5000 --classes 1,2 --mask sign "
        "--out mask.csv --report page.html[/bold]"
    )(mask)
