"""The ``auditor`` command: each command parses, calls one function and prints.

Results go to standard output (``--json`` for programs), progress to standard error. Modules are imported inside
the commands, so that ``auditor status`` does not wait for torch.
"""

from __future__ import annotations

import dataclasses
import logging
import shlex
import signal
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor.cli.options import (
    AS_JSON,
    AUDIT_ID,
    DEVICE,
    FORCE,
    LARGEST,
    MAX_FDR,
    ON,
    POLICY,
    REVIEWER,
    SEED,
    SETTINGS,
    Commands,
    echo,
    engines_option,
    kind_of,
    named,
    port_option,
    preset_option,
    refuse,
    refuse_beside,
    refuse_unused,
    reviewer_or_login,
    writing,
)
from auditor.ground.vocabulary import MULTILABEL, PURPOSES, REGRESSION, TASKS
from auditor.ground.wording import plural

if TYPE_CHECKING:
    from auditor.backbones.features import FeatureSource
    from auditor.catalog.records import Draw

PLANNED = (
    *("engines", "preset", "device", "seed", "settings", "map_method"),
    *("backbone", "weights", "backbone_size", "views", "own_features", "features_column", "finetune"),
    *("alone", "budget"),
)
"""What is fixed once an audit is planned."""
NOT_OF_SOURCES = ("image_size", "levels", "skip_bad", "workers", "on")
"""Options of an import that a preview does not take."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="label-auditor")
@click.option("-v", "--verbose", is_flag=True, help="Also show what libraries log, and where an error began.")
def cli(verbose: bool) -> None:
    """Find the wrong labels in an image set, decide on them fast, and get a clean CSV."""
    if verbose:
        logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(levelname)s %(message)s")


@cli.command("import")
@click.argument("source")
@click.option("--name", required=True, help="Name of the dataset from now on.")
@click.option(
    "--image-size", type=click.IntRange(1, 1024), help="Side in pixels; default: median, at most 224."
)
@click.option("--path-column", help="Column with image paths; default: found by its name.")
@click.option("--label-column", help="Column with given labels; default: found by its name.")
@click.option("--true-label-column", help="Column with known truth, for benchmarks only; never trained on.")
@click.option(
    "--root", help="Folder or address that paths are relative to; of a folder: links are followed below it."
)
@click.option(
    "--class-names",
    type=click.Path(path_type=Path),
    help="File with one class name per line, class 0 first, for labels that are numbers; for coloured masks `R G B "
    "NAME` a line.",
)
@click.option(
    "--task",
    type=click.Choice(TASKS),
    help="What the labels are: one class per image (the default), one mask, one number, or several classes per "
    "image (or none).",
)
@click.option(
    "--masks",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder with a mask for each image of SOURCE; not needed for images/ and masks/, the layout of VOC and "
    "that of Cityscapes.",
)
@click.option(
    "--ignore-index",
    type=click.IntRange(0, 65_535),
    metavar="VALUE",
    help="Value of pixels that have no class in the masks; default: 255.",
)
@click.option(
    "--masks-on",
    type=click.Choice(["stored", "seen"]),
    help="What masks or boxes of pictures that EXIF turns were drawn on, where that is asked: the pixels as they "
    "lie in the file, or the picture as it is shown.",
)
@click.option("--encoding", metavar="NAME", help="Of a table that is not UTF-8, such as cp1252 or shift_jis.")
@click.option(
    "--merge-classes/--no-merge-classes",
    default=None,
    help="Class names that look alike, such as Cat and cat, are one class, or are not; default: that is asked.",
)
@click.option(
    "--joined-classes",
    is_flag=True,
    help="A label such as cat|dog is a class of its own, not two classes of one image.",
)
@click.option(
    "--layout",
    type=click.Choice(["classes", "splits", "deepest"]),
    help="Where that is asked: the classes are the first folders, those below splits, or the deepest folders.",
)
@click.option(
    "--annotators",
    callback=named,
    metavar="A,B,...",
    help="Columns with one annotator's answers each (Parquet: or a column of lists); of Label Studio's and "
    "Labelbox's files the annotators, or all. The label is their consensus.",
)
@click.option(
    "--annotator-column",
    help="Of a table with one row an answer: who answered; --label-column holds the answers.",
)
@click.option(
    "--range",
    "levels",
    type=(float, float),
    metavar="LOW HIGH",
    help="Grey values that become black and white in images of more than 8 bits; default: the range of the set.",
)
@click.option("--dry-run", is_flag=True, help="Say what the source holds and how it is read; import nothing.")
@click.option("--boxes", is_flag=True, help="Of COCO: each box is a sample, not each image.")
@click.option("--skip-bad", is_flag=True, help="Skip unreadable files instead of refusing the import.")
@click.option("--workers", type=click.IntRange(1, 1_000), help="Processes; default: one per core.")
@click.option(
    "--on",
    metavar="processes|ray[://HOST:PORT]",
    help="Where 1,000 images or more are decoded: here, or on a Ray cluster. Default: AUDITOR_EXECUTOR, else here.",
)
@AS_JSON
def import_command(source: str, name: str, as_json: bool, dry_run: bool, **options: Any) -> None:
    """Import labelled images: a folder, a table, an archive, another tool's annotations, or the address of one.

    SOURCE is a folder with one sub-folder per class, a CSV, TSV or .xlsx, Parquet, a zip or tar of these, shards of
    WebDataset, a file of annotations (metadata.jsonl, COCO, Label Studio, Labelbox, CVAT, val.txt), a folder of
    save_to_disk or fiftyone:NAME; or the address of one: s3://, gs://, https://.
    """
    from auditor.cli import output
    from auditor.importing import BadRowsError, import_dataset, preview_source

    if dry_run:
        options = {one: value for one, value in options.items() if one not in NOT_OF_SOURCES}
        output.preview(preview_source(source, **options), as_json=as_json)
        return
    try:
        with output.step_progress() as progress:
            report = import_dataset(source, name=name, progress=progress, **options)
    except BadRowsError as error:
        if error.count > 1:  # a single one is in the error's own line
            output.problems(error.problems, error.count)
        raise
    output.import_report(report, as_json=as_json)


@cli.command()
@click.argument("name")
@engines_option("all")
@preset_option("on a CPU what fits into 10 minutes, on a GPU quick")
@click.option(
    "--budget",
    metavar="TIME",
    help="Time to train in, such as 10m, 2h or overnight: the audit does what finds most in it. Default on a CPU "
    "without --preset: 10m.",
)
@DEVICE
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed of all random choices; the same seed gives the same training.",
)
@SETTINGS
@click.option(
    "--map",
    "map_method",
    type=click.Choice(["umap", "pca"]),
    default="umap",
    show_default=True,
    help="How the map of embeddings is laid out; pca takes seconds.",
)
@click.option(
    "--backbone",
    metavar="NAME",
    help="A pretrained network that sees every image once, such as timm:mobilenetv3_large_100; the engines "
    "train on its features. Several with commas between stand side by side. Default: one that you fetched, else "
    "the one that comes with the installation, where it suits the images (see `weights list`); none: train "
    "from scratch.",
)
@click.option("--weights", type=click.Path(path_type=Path), help="File with the weights of --backbone.")
@click.option(
    "--backbone-size",
    type=click.IntRange(8, 4_096),
    metavar="PX",
    help="Side in pixels of the images that --backbone gets.",
)
@click.option("--views", type=click.IntRange(1, 6), help="Views of each image; default: 1.")
@click.option(
    "--finetune",
    type=click.Choice(["none", "plain", "all"]),
    help="Who trains the backbone too, on the images, in place of a head on its features: nobody, the plain "
    "engine, or every engine. It finds more and takes longer. Default: plain on a GPU, else none.",
)
@click.option(
    "--features",
    "own_features",
    metavar="FILE|column:NAME|fiftyone:FIELD",
    help="Your own features instead of a backbone: an .npy of (N, D) or (N, V, D) in the dataset's order; a .csv, "
    ".tsv, .xlsx or .parquet with sample_id or filepath; columns of NAME itself; or a field of the FiftyOne "
    "dataset that was imported (fiftyone:OTHER/FIELD: of another).",
)
@click.option(
    "--features-column",
    metavar="COLUMN",
    help="Of a table of --features: the column with lists, or what the names of several columns begin with.",
)
@click.option(
    "--pred-probs",
    metavar="FILE|column:PREFIX",
    help="Your own model's probabilities, one more engine of this and later audits: a .csv, .tsv, .xlsx or "
    ".parquet with sample_id or filepath and one column per class, an (N, K) .npy in the order of samples and "
    "classes, or NAME's own columns PREFIX + class name.",
)
@click.option(
    "--forget-pred-probs",
    metavar="MODEL",
    help="Remove a model's probabilities (see `status`); nothing else is done.",
)
@click.option(
    "--alone",
    is_flag=True,
    help="Use only this audit's engines, not the latest runs of others in earlier audits.",
)
@ON
@click.option("--resume", is_flag=True, help="Continue the newest audit that did not finish.")
@click.option("--detach", is_flag=True, help="Start and return; `auditor status NAME` shows progress.")
@AS_JSON
def audit(
    name: str,
    engines: list[str] | None,
    preset: str,
    budget: str | None,
    device: str,
    seed: int,
    settings: tuple[str, ...],
    map_method: str,
    backbone: str | None,
    weights: Path | None,
    backbone_size: int | None,
    views: int | None,
    finetune: str | None,
    own_features: str | None,
    features_column: str | None,
    pred_probs: str | None,
    forget_pred_probs: str | None,
    alone: bool,
    executor: str | None,
    resume: bool,
    detach: bool,
    as_json: bool,
) -> None:
    """Train the engines on dataset NAME and score every label. Ctrl-C keeps what is done so far.

    Of a dataset of masks it scores every pixel, with the engine cross_entropy; of numbers it trains
    choicenet and, as cross_entropy, a plain mixture density network; of several classes per image the noise model
    asks about each class.
    """
    from auditor.audits import newest_unfinished_audit, start_audit
    from auditor.bridges import engine_bridge
    from auditor.cli import output
    from auditor.results import own_models
    from auditor.work import ExecutorChoice

    ExecutorChoice.of(executor)
    engine_bridge.checkpoint_interval_s()  # what is wrong there is said before anything is trained
    kind = kind_of(name)
    if forget_pred_probs is not None:
        if pred_probs is not None or resume or detach:
            raise click.UsageError("--forget-pred-probs trains nothing; use it alone.")
        own_models.forget(name, forget_pred_probs)
        echo(f"{name}: audits no longer use {forget_pred_probs}.")
        return
    if resume:
        refuse_beside("--resume", PLANNED, "an audit goes on as planned; leave --resume out to plan another")
    witness = None if pred_probs is None else own_models.read(name, pred_probs)
    if resume:
        audit_id = newest_unfinished_audit(name, executor)
    else:
        refuse_unused(kind, "audit")
        found, why = None, ""
        if "backbone" not in kind.unused["audit"]:
            named = (name, backbone, weights, backbone_size, views, own_features, features_column)
            found, why = _features(*named, one=finetune == "all")
        audit_id = kind.plan(
            name,
            engines,
            preset=preset,
            device=device,
            seed=seed,
            options=engine_bridge.options_of(settings),
            map_method=map_method,
            features=found,
            alone=alone,
            finetune=finetune,
            budget=_budget(budget, device),
            on=executor,
        )
        if why:
            echo(why, err=True)
        output.plan_summary(audit_id)
    if witness is not None:  # now that nothing else refuses the command
        added = own_models.keep(witness)
        taken = f"{added.num_rows:,} of {plural(added.num_samples, 'sample')}"
        echo(f"{added.name}: predictions for {taken} are one more engine.", err=True)
    start_audit(audit_id)
    if detach:
        shown = f"`auditor status {shlex.quote(name)}` shows its progress"
        echo(f"Audit {output.number_of(audit_id)} runs in the background; {shown}.")
        return
    output.follow_audit(audit_id)
    output.audit_summary(audit_id, as_json=as_json)


def _budget(text: str | None, device: str) -> float | None:
    """Seconds of ``--budget``; the default is ten minutes on a CPU where ``--preset`` does not say how long."""
    from auditor.audits import DEFAULT_BUDGET_S, parse_budget
    from auditor.bridges import engine_bridge

    context = click.get_current_context()
    is_preset_given = context.get_parameter_source("preset") is click.core.ParameterSource.COMMANDLINE
    if text is not None:
        if is_preset_given:
            raise click.UsageError("--budget takes the place of --preset; use one of them.")
        return parse_budget(text)
    is_cpu = engine_bridge.resolve_device(device) == "cpu"
    return DEFAULT_BUDGET_S if is_cpu and not is_preset_given else None


def _features(
    name: str,
    backbone: str | None,
    weights: Path | None,
    side: int | None,
    views: int | None,
    own: str | None,
    column: str | None,
    one: bool = False,
) -> tuple[FeatureSource | None, str]:
    """Return what the options of ``audit`` say about features, and a sentence about it, which may be empty."""
    from auditor import api
    from auditor.audits import choose_features
    from auditor.backbones import features

    if column is not None and own is None:
        raise click.UsageError("--features-column is of a table; name it with --features.")
    if own is not None:
        if backbone is not None or weights is not None or side is not None or views is not None:
            raise click.UsageError("--features takes the place of a backbone; use one of them.")
        return api.own_features(name, own, column=column), ""
    return choose_features(name, backbone, weights, side=side, views=views or features.DEFAULT_VIEWS, one=one)


@cli.group(cls=Commands)
def weights() -> None:
    """Weights of pretrained backbones: list them, or download one."""


@weights.command("list")
@AS_JSON
def list_weights(as_json: bool) -> None:
    """Show a short list of backbones, what each is good for, and where its weights are; then all others that are
    kept here. Needs no internet.
    """
    from auditor.backbones import weights as files
    from auditor.backbones.shelf import SHELF
    from auditor.cli import output

    good_for = {each.name: each.good_for for each in SHELF}
    others = {found.name: "kept here" for found in files.here() if found.name not in good_for}
    output.weights_table(
        [files.listed(name) | {"good_for": text} for name, text in (good_for | others).items()],
        as_json=as_json,
    )


@weights.command("add")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@AS_JSON
def add_weights(name: str, file: Path, as_json: bool) -> None:
    """Keep a copy of FILE in AUDITOR_HOME as the weights of NAME: audits and the app find it from now on."""
    from auditor.backbones import weights as files
    from auditor.cli import output

    output.weights_kept(files.add(name, file), as_json=as_json)


@weights.command("get")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@AS_JSON
def get_weights(name: str, yes: bool, as_json: bool) -> None:
    """Download the weights of NAME, such as timm:mobilenetv3_large_100, and keep them in AUDITOR_HOME."""
    from auditor.backbones import weights as files
    from auditor.cli import output

    def agreed(offer: files.Offer) -> bool:
        size = "size unknown" if offer.size is None else f"{offer.size / 1e6:,.0f} MB"
        echo(f"{offer.source}: {size}, licence {offer.licence}.", err=True)
        return yes or click.confirm("Download it?", err=True)

    found = files.get(name, on_offer=agreed)
    output.weights_kept(found, as_json=as_json)


@cli.command(hidden=True)
@click.argument("job_id", type=click.IntRange(1, LARGEST))
def job(job_id: int) -> None:
    """Do a job's work in this process (started by `audit` and by the app)."""
    from auditor.cli import kinds

    def interrupt(number: int, _frame: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # a second one does not interrupt the clearing up
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    kinds.run(job_id)


@cli.command()
@click.argument("name", required=False)
@AS_JSON
def status(name: str | None, as_json: bool) -> None:
    """Show all datasets, or one dataset with its audits, review and estimates."""
    from auditor.cli import output

    output.status(name, as_json=as_json)


@cli.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--annotators", callback=named, metavar="A,B,...", help="Columns that hold one annotator's answers each."
)
@click.option(
    "--annotator-column", help="Of a table with one row an answer: the column with the annotator's name."
)
@click.option("--label-column", help="There: the column with the answer.")
@click.option("--path-column", help="There: the column with the picture.")
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="Pictures to ask about first."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="CSV with a row a picture, every answer, and the consensus.",
)
@FORCE
@AS_JSON
def annotators(table: Path, out: Path | None, as_json: bool, **given: Any) -> None:
    """Find the consensus of several annotators' answers, how good each is, and whom to ask next.

    TABLE is a file of answers, or a dataset that was imported with --annotators: then its newest audit says what it
    thinks of the pictures.
    """
    from auditor.cli import output
    from auditor.outputs import answers_of_dataset, read_annotated, write_annotated

    force = given.pop("force")
    if not table.exists() and not given["annotators"] and out is None:
        output.annotators(answers_of_dataset(str(table), top=given["top"]), None, None, as_json=as_json)
        return
    found = read_annotated(table, **given)
    if out is not None:
        with writing(out):
            write_annotated(found, out, force=force)
    elsewhere = out is not None and out.absolute().parent != table.absolute().parent
    folder = str(table.absolute().parent) if elsewhere else None
    output.annotators(found.summary, None if out is None else str(out), folder, as_json=as_json)


@cli.command()
@click.argument("name")
@click.option("--top", type=click.IntRange(1), default=50, show_default=True, help="How many to list.")
@MAX_FDR
@click.option("--split", help="Only the labels of this split, such as test.")
@AUDIT_ID
@AS_JSON
def suspects(
    name: str, top: int, max_fdr: float | None, split: str | None, audit_id: int | None, as_json: bool
) -> None:
    """List the most suspicious labels of NAME; --max-fdr only lists what can be promised at that rate."""
    from auditor.cli import output

    output.suspects(name, top=top, max_fdr=max_fdr, audit_id=audit_id, split=split, as_json=as_json)


@cli.command()
@click.argument("name")
@click.option("--draw", type=click.IntRange(1), metavar="N", help="Draw N samples at random and write --out.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(PURPOSES),
    help="promises: most from the head of the ranking (the default after an audit); rate: uniformly.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="The same seed draws the same samples.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="CSV to fill in: a class (of a mask: right or wrong), exclude, or empty.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    metavar="T",
    help="Of numbers: a given one is wrong where it is farther than T from the one that you see.",
)
@click.option("--draw-id", type=click.IntRange(1), metavar="N", help="Write the file of draw N again.")
@click.option("--apply", "apply_path", type=click.Path(path_type=Path), help="The filled CSV.")
@REVIEWER
@FORCE
@AS_JSON
def verify(
    name: str,
    draw: int | None,
    purpose: str | None,
    seed: int,
    out: Path | None,
    tolerance: float | None,
    draw_id: int | None,
    apply_path: Path | None,
    reviewer: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Judge a random sample of NAME: --draw 200 --out F, fill in verdict_label, --apply F.

    --draw-id N --out F writes the file of an earlier draw again, without its verdicts; a number that is not
    a draw of NAME lists the draws of NAME.
    """
    from auditor.cli import output
    from auditor.review import draw_files, drawing

    if sum(one is not None for one in (draw, draw_id, apply_path)) != 1:
        raise click.UsageError("Use one of --draw N --out FILE, --draw-id N --out FILE and --apply FILE.")
    if out is None and apply_path is None:
        raise click.UsageError("--draw and --draw-id need --out FILE.")
    refuse(name, "verify", others=TASKS)
    if apply_path is not None:
        refuse_beside("--apply", ("out", "seed", "force", "purpose", "tolerance"), "leave it out")
        counts = draw_files.apply_csv(name, apply_path, reviewer=reviewer_or_login(reviewer))
        output.verdicts_applied(name, counts, as_json=as_json)
        return
    assert out is not None
    if draw_id is not None:
        refuse_beside("--draw-id", ("seed", "purpose", "tolerance"), "that draw exists already; leave it out")
        drawn, judged = draw_files.write_again(name, draw_id, out, force=force)
        text = (
            f"{out}: the {plural(drawn.size, 'sample')} of draw {draw_id} again, {judged} of them judged; an empty "
            "verdict_label leaves a verdict unchanged."
        )
        output.done(text, _draw_facts(drawn, out) | {"judged": judged}, as_json=as_json)
        return
    purpose = purpose or drawing.usual_purpose(name, int(draw or 0))
    drawn = draw_files.draw_csv(
        name, int(draw or 0), out, seed=seed, purpose=purpose, tolerance=tolerance, force=force
    )
    text = (
        f"{plural(drawn.size, 'sample')} drawn with seed {seed}{drawing.zones_in_words(drawn)}: fill in "
        f"verdict_label in {out}, then --apply it."
    )
    output.done(text, _draw_facts(drawn, out), as_json=as_json)


def _draw_facts(drawn: Draw, out: Path) -> dict[str, Any]:
    """A draw and its file, for programs."""
    facts = {"draw": drawn.id, "size": drawn.size, "seed": drawn.seed, "purpose": drawn.purpose}
    return facts | {"zones": drawn.zones, "tolerance": drawn.tolerance, "out": str(out)}


@cli.command()
@click.argument("name")
@click.option(
    "--alone/--with-earlier",
    default=None,
    help="From now on only the audit's own runs, or also the latest of other engines and models in earlier audits.",
)
@AUDIT_ID
@AS_JSON
def runs(name: str, alone: bool | None, audit_id: int | None, as_json: bool) -> None:
    """Show which runs speak in the ranking of NAME, or choose whether runs of earlier audits are heard.

    The audit is ranked again at once; nothing is trained. Choose before you read a promise: whoever takes of two
    rankings the one with the better promise makes it too good.
    """
    from auditor.cli import output

    if alone is not None:
        refuse(name, "runs --alone and --with-earlier")
    output.runs_that_speak(name, alone=alone, audit_id=audit_id, as_json=as_json)


@cli.command()
@click.argument("name")
@click.option("--add", metavar="CLASS", help="A new class, which labels can be changed to from now on.")
@click.option(
    "--remove", metavar="CLASS", help="Take back the class that was added last, while nothing names it."
)
@click.option("--rename", nargs=2, metavar="CLASS NEW", help="Call a class otherwise.")
@click.option("--merge", nargs=2, metavar="CLASS INTO", help="Make CLASS a part of the class INTO.")
@click.option(
    "--split", nargs=2, metavar="CLASS NEW", help="Move the samples of --samples from CLASS into a new class."
)
@click.option(
    "--samples",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV, TSV or Parquet with the column sample_id, such as a part of an export.",
)
@click.option("--undo", is_flag=True, help="Take back the last renaming, merging or splitting that stands.")
@click.option(
    "--log", "shows_log", is_flag=True, help="Show the renamings, mergings and splittings that stand."
)
@REVIEWER
@AS_JSON
def classes(
    name: str,
    add: str | None,
    remove: str | None,
    rename: tuple[str, str] | None,
    merge: tuple[str, str] | None,
    split: tuple[str, str] | None,
    samples: Path | None,
    undo: bool,
    shows_log: bool,
    reviewer: str | None,
    as_json: bool,
) -> None:
    """Show the classes of NAME, or change them: add, rename, merge or split one, or take that back.

    The labels of the source stay as they were imported: exports say them in given_label, and the class of today in
    cleaned_label. Audits are ranked again at once; engines learn a new class in the next audit, from decisions.
    """
    from auditor.catalog import reading
    from auditor.cli import output
    from auditor.results import class_changes, new_classes

    if sum(map(bool, (add, remove, rename, merge, split, undo, shows_log))) > 1:
        raise click.UsageError(
            "Give one of --add, --remove, --rename, --merge, --split, --undo, --log at a time."
        )
    if (split is None) != (samples is None):
        raise click.UsageError("Give --split and --samples together.")
    who = reviewer_or_login(reviewer)
    if add is not None:
        new_classes.add(name, add)
    elif remove is not None:
        new_classes.remove(name, remove)
    elif rename is not None:
        class_changes.rename(name, *rename, reviewer=who)
    elif merge is not None:
        class_changes.merge(name, *merge, reviewer=who)
    elif split is not None and samples is not None:
        class_changes.split(name, *split, class_changes.samples_in(samples), reviewer=who)
    elif undo:
        class_changes.undo(name, reviewer=who)
    dataset = reading.dataset(name)
    names, log = list(dataset.classes.values()), class_changes.sentences(dataset)
    said = log or ["No class was renamed, merged or split."] if shows_log else names
    output.done("\n".join(said), {"classes": names, "changes": dataset.changes}, as_json=as_json)


@cli.command()
@click.argument("name")
@click.option("--apply", "apply_path", type=click.Path(path_type=Path), required=True, help="Decisions.")
@REVIEWER
@AS_JSON
def review(name: str, apply_path: Path, reviewer: str | None, as_json: bool) -> None:
    """Read decisions on NAME from a file with the columns of an export."""
    from auditor.cli import output
    from auditor.results import ranking
    from auditor.review import decision_files

    refuse(name, "review", others=[REGRESSION, MULTILABEL])
    counts = decision_files.apply_file(name, apply_path, reviewer=reviewer_or_login(reviewer))
    moved = ranking.of_newest(name)
    done = ", ".join(f"{count} {decision}" for decision, count in counts.items() if count)
    text = f"{apply_path}: {done or 'no decisions in it'}. {moved.sentence if moved else ''}".rstrip()
    output.done(text, {"decisions": counts}, as_json=as_json)


@cli.command()
@click.argument("name")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help=".csv, .tsv, .parquet, a folder, or the kind of file that was imported.",
)
@click.option("--as-source", is_flag=True, help="In the form that was imported, everything else unchanged.")
@click.option("--links", is_flag=True, help="A folder: hard links to the images instead of copies.")
@POLICY
@MAX_FDR
@AUDIT_ID
@FORCE
@AS_JSON
def export(
    name: str,
    out: Path,
    as_source: bool,
    links: bool,
    policy: str,
    max_fdr: float | None,
    audit_id: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the cleaned labels of NAME.

    --policy auto also takes suggestions where nobody has decided: on average at most --max-fdr of them are wrong.
    Of a dataset of masks --out is a new folder or .zip file: the cleaned masks in the layout that they came in, and
    masks.csv.
    """
    from auditor.cli import output

    kind = kind_of(name)
    refuse_unused(kind, "export")
    if "links" not in kind.unused["export"]:
        if not out.suffix:
            refuse_beside("a folder", ("force",), "name a new folder")
        if as_source:
            refuse_beside("--as-source", ("links",), "links are for a folder of classes; leave it out")
        elif out.suffix:
            refuse_beside("a file", ("links",), "links are for a folder; leave it out")
    with writing(out), output.step_progress() as progress:
        summary = kind.export(
            name,
            out,
            policy=policy,
            max_fdr=max_fdr,
            audit_id=audit_id,
            force=force,
            as_source=as_source,
            links=links,
            progress=progress,
        )
    output.done(
        f"{out}: {summary.sentence}", {"out": str(out), **dataclasses.asdict(summary)}, as_json=as_json
    )


@cli.command()
@click.argument("name")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1_000),
    default=3,
    show_default=True,
    help="How many networks are trained on each side.",
)
@preset_option("quick")
@DEVICE
@ON
@click.option(
    "--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field of the network."
)
@POLICY
@MAX_FDR
@AUDIT_ID
@AS_JSON
def compare(
    name: str, seeds: int, executor: str | None, settings: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Train the plain baseline on given and on cleaned labels of NAME and compare on verified rows.

    The cleaned labels are those that `export` writes with the same --policy, --max-fdr and --audit.
    """
    from auditor.bridges import engine_bridge
    from auditor.cli import output
    from auditor.experiments import train_before_and_after

    refuse(name, "compare")
    fields = engine_bridge.options_of([f"cross_entropy.{text}" for text in settings])
    with output.step_progress() as progress:
        result = train_before_and_after(
            name,
            seeds=tuple(range(seeds)),
            options=fields.get("cross_entropy"),
            on=executor,
            on_ready=lambda text: echo(text, err=True),
            on_progress=progress,
            **options,
        )
    output.before_after(result, as_json=as_json)


@cli.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="An .html file.")
@AUDIT_ID
@FORCE
@AS_JSON
def report(name: str, out: Path, audit_id: int | None, force: bool, as_json: bool) -> None:
    """Write one self-contained HTML page on NAME for people who did not run the audit."""
    from auditor.cli import output
    from auditor.outputs import write_report

    with writing(out), output.step_progress() as progress:
        write_report(name, out, audit_id=audit_id, force=force, progress=progress)
    output.done(f"{out}: written.", {"out": str(out)}, as_json=as_json)


@cli.command()
@click.argument("name")
@click.argument("action", type=click.Choice(["push", "pull", "open"]), default="open")
@click.option(
    "--as", "to", metavar="OTHER", help="FiftyOne's dataset; default: the one NAME came from, or NAME."
)
@click.option("--replace", is_flag=True, help="push: drop what an earlier import of that name wrote.")
@AUDIT_ID
@port_option(5151, "open: the App's.")
@click.option("--view", default="suspected mislabels", show_default=True, help="open: a saved view.")
@click.option("--browser/--no-browser", default=True, help="open: show it in the browser.")
@REVIEWER
@AS_JSON
def fiftyone(name: str, action: str, reviewer: str | None, **options: Any) -> None:
    """Browse NAME's audit in FiftyOne: push it there, pull decisions back, or open the App on it."""
    from auditor.cli import fiftyone as fiftyone_cli

    refuse(name, "fiftyone", others=TASKS)
    decides = action != "push"
    fiftyone_cli.run(name, action, reviewer=reviewer_or_login(reviewer) if decides else "", **options)


@cli.command()
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path))
@AS_JSON
def move(name: str, folder: Path, as_json: bool) -> None:
    """Tell the auditor that the images of NAME are now in FOLDER (their content is checked); decisions stay."""
    from auditor.cli import output
    from auditor.pictures import cache

    cache.move_root(name, folder)
    root = str(folder.resolve())
    output.done(f"{name} now reads from {root}.", {"dataset": name, "root": root}, as_json=as_json)


@cli.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@AS_JSON
def remove(name: str, yes: bool, as_json: bool) -> None:
    """Remove dataset NAME with its audits and reviews. The source is not changed."""
    from auditor import api
    from auditor.cli import output

    if not yes:
        click.confirm(f"Remove {name} with all of its audits and decisions?", abort=True, err=as_json)
    left = api.remove(name)
    facts = {"removed": name, "left": [str(folder) for folder in left]}
    output.done(f"{name} is removed; its source was not changed.", facts, as_json=as_json)
    for folder in left:
        echo(f"Not deleted: {folder} (see `auditor doctor`).", err=True)


@cli.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--catalog-only", is_flag=True, help="Leave out image caches and the arrays of audits.")
@FORCE
@AS_JSON
def backup(out: Path, catalog_only: bool, force: bool, as_json: bool) -> None:
    """Write everything that the auditor keeps to OUT, one .tar; the app may stay open."""
    from auditor.catalog import backups
    from auditor.cli import output

    with writing(out):
        done = backups.backup(out, with_files=not catalog_only, force=force)
    counts = f"{plural(done.num_datasets, 'dataset')}, {plural(done.num_audits, 'audit')}"
    text = f"{out}: {counts}, {done.num_bytes / 1e6:,.1f} MB."
    output.done(text, {"out": str(out), **dataclasses.asdict(done)}, as_json=as_json)
    for folder in done.left_out:
        echo(f"Left out: {folder} (see `auditor doctor`).", err=True)


@cli.command()
@click.argument("source", type=click.Path(path_type=Path))
@AS_JSON
def restore(source: Path, as_json: bool) -> None:
    """Bring the backup SOURCE back into an empty AUDITOR_HOME (and an empty database)."""
    from auditor.catalog import backups
    from auditor.cli import output

    done = backups.restore(source)
    text = f"{plural(done.num_datasets, 'dataset')} and {plural(done.num_audits, 'audit')} restored."
    output.done(text, dataclasses.asdict(done), as_json=as_json)
    for text in done.left_out:
        echo(text, err=True)


@cli.command()
@click.option("--no-app", is_flag=True, help="Stop after the CSV is written; do not open the app.")
@engines_option("all")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The cleaned CSV; default: next to the demo's images."
)
@port_option(8501, "Of the app.")
@FORCE
@AS_JSON
def demo(
    no_app: bool, engines: list[str] | None, out: Path | None, port: int, force: bool, as_json: bool
) -> None:
    """Audit scikit-learn's 1,797 handwritten digits with 180 known wrong labels and show what was found."""
    from auditor.cli import demo as demonstration
    from auditor.cli import output, serve

    # For a program the lines for people go where progress goes.
    with writing(out) if out else nullcontext(), redirect_stdout(sys.stderr) if as_json else nullcontext():
        found = demonstration.run(out=out, engines=engines, force=force)
    if as_json:
        output.print_json(dataclasses.asdict(found))
    if not no_app:
        serve.serve(port=port, page="suspects", dataset=found.dataset)


@cli.command()
@port_option(8501, "Of the app.")
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="0.0.0.0 lets other machines connect."
)
def app(port: int, address: str) -> None:
    """Serve the app for your browser: http://127.0.0.1:8501."""
    from auditor.cli import serve

    serve.serve(port=port, address=address)


@cli.command()
@AS_JSON
def doctor(as_json: bool) -> None:
    """Say what this machine has and what is missing: Python, torch, GPU, browser, MongoDB, home, disk."""
    from auditor.cli import doctor as diagnosis
    from auditor.cli import output

    checks = diagnosis.checks()
    if as_json:
        output.print_json([dataclasses.asdict(check) for check in checks])
    else:
        for check in checks:
            echo(f"{check.mark} {check.name:<12} {check.text}")
    sys.exit(1 if any(check.is_fatal for check in checks) else 0)
