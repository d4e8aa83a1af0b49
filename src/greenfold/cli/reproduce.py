"""`greenfold reproduce`: reproduce the paper's figures and tables."""

from dataclasses import asdict
from pathlib import Path

from . import options
from .options import Answer, arg, command, invocation, opt


@command("greenfold reproduce fig2 --quick")
def reproduce(
    names: list[str] | None = arg(None, "NAME"),
    out: Path = opt(Path("reproduction"), "Output"),
    quick: bool = opt(False),
    redraw: bool = opt(False),
    data_dir: Path | None = options.DATA_DIR,
    jobs: int | None = opt(None, "Output", "-j"),
    json: bool = options.JSON,
) -> Answer:
    """Reproduce the figures and tables of the paper.

    Seeds and parameters are fixed; they are at the top of the files in
    greenfold/apps/paper.

    names : Any of fig1, fig2, fig3, fig4, table1, supplement and beyond (results beyond the
        paper); all by default.
    out : Folder for the files.
    quick : Run a reduced version, which takes about half a minute per figure.
    jobs : Number of processes; all cores by default.
    redraw : Draw again from the JSON files in the folder, without computing.
    """
    if redraw:
        why = "does not change what is drawn; leave it out with --redraw"
        invocation.refuse(why, "quick", "jobs", "data_dir")
    options.need("matplotlib")
    from ..apps.paper.figures import FIGURES, ON_HEARTBEATS
    from ..apps.paper.figures import reproduce as reproduced

    unknown = next((one for one in names or () if one not in FIGURES), None)
    known = f"choose from {', '.join(FIGURES)}"
    options.refuse_if(unknown, f"no figure or table is called {unknown!r}; {known}")
    if not ON_HEARTBEATS & set(names or FIGURES):
        invocation.refuse("is for figures on ECG5000; leave it out", "data_dir")
    outcomes = []
    for name in names or FIGURES:
        for outcome in reproduced(name, out, quick, data_dir, jobs, redraw):
            outcomes.append(asdict(outcome))
            if not json:  # print it now, because the next one may take minutes
                print(outcome, flush=True)
    skipped = any(one["skipped"] is not None for one in outcomes)
    return Answer({"outcomes": outcomes}, lambda: None, skipped)
