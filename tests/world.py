"""The second tier of the tests: other systems, services, people and parts, which ``make test`` leaves out.

``make test-all`` runs them. ``python -m tests.world [BASE]`` prints those whose sources changed since the commit
BASE or in the last ten commits: what CI adds to ``make test``. As a plugin of pytest (``-p tests.world``) this
module adds ``--until``, after which no further test begins.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CATALOG, BENCH = ("auditor/catalog/",), ("app/components/", "app/server/", "app/panels/", "app/frame.")
FIFTYONE = ("auditor/fiftyone_bridge/", "auditor/bridges/fiftyone_door.py", "tests/mongodb.py")
ENGINES, FINETUNING = ("engines/", "tests/engines/"), ("auditor/audits/", "auditor/backbones/", "engines/")
RATES, PAGES = "tests/auditor/statistics/rates", "tests/app/screens/test_pages.py"
IMPORTS = "tests/auditor/importing/test_imports.py"
STATISTICS = ("auditor/statistics/",)
BACKBONES = ("auditor/backbones/", "auditor/audits/", "engines/backbones/", "engines/networks/")
DEPLOY = (
    *("deploy/", "Dockerfile"),
    *("app/session/sign_in.py", "app/session/access.py", "app/session/allowed.py"),
)
PACKAGING = ("pyproject.toml", "requirements.lock", "Dockerfile", "app/main.py", "auditor/__main__.py")

WORLD: dict[str, tuple[str, ...]] = {
    "tests/scale": (
        *("auditor/work/", "auditor/audits/shards.py"),
        *("auditor/importing/building.py", "auditor/importing/pool.py"),
    ),
    # A catalog on PostgreSQL.
    "tests/auditor/catalog/test_postgres.py": CATALOG,
    "tests/auditor/cli/test_postgres.py": CATALOG,
    "tests/auditor/fiftyone_bridge/test_postgres.py": CATALOG,
    "tests/app/screens/test_postgres.py": CATALOG,
    # What kills, damages and full disks leave.
    "tests/faults/test_audit_killed.py": ("auditor/audits/", "auditor/work/", "auditor/jobs/"),
    "tests/faults/test_belonging.py": ("auditor/catalog/", "auditor/importing/"),
    "tests/faults/test_import_faults.py": ("auditor/importing/", "auditor/pictures/cache.py"),
    "tests/faults/test_offline.py": ("app/frame.", "app/components/", "auditor/backbones/", *PACKAGING),
    "tests/faults/test_removal_killed.py": ("auditor/catalog/removal.py", "auditor/catalog/leases.py"),
    "tests/auditor/experiments": ("auditor/experiments/", "auditor/work/executors.py"),
    "tests/auditor/work/test_executors.py": ("auditor/work/", "auditor/audits/"),
    # Processes that are killed or stopped in the middle, and those that calls are made in.
    "tests/app/session/test_apart.py": ("app/session/apart.py", "auditor/ground/apart.py"),
    "tests/auditor/results/test_settle.py::test_settle__stopped_in_the_middle": (
        *("auditor/results/settle.py", "auditor/catalog/scores.py"),
    ),
    "tests/auditor/ground/test_apart.py": ("auditor/ground/apart.py",),
    "tests/auditor/importing/test_foreign_files.py": ("auditor/importing/", "auditor/pictures/"),
    # FiftyOne: push, its App and services, in a browser, a notebook and with MongoDB of its own.
    "tests/auditor/importing/test_fiftyone.py": (*FIFTYONE, "auditor/pictures/sources/fiftyone_sets.py"),
    "tests/auditor/fiftyone_bridge/test_app.py": FIFTYONE,
    "tests/auditor/fiftyone_bridge/test_formats.py": FIFTYONE,
    "tests/auditor/fiftyone_bridge/test_masks.py": (*FIFTYONE, "auditor/labels/masks/"),
    "tests/auditor/fiftyone_bridge/test_notebook.py": FIFTYONE,
    "tests/auditor/fiftyone_bridge/test_pull.py": FIFTYONE,
    "tests/auditor/fiftyone_bridge/test_push.py": FIFTYONE,
    "tests/auditor/fiftyone_bridge/test_numbers.py": (*FIFTYONE, "auditor/labels/numbers/"),
    "tests/auditor/fiftyone_bridge/test_server.py": FIFTYONE,
    # Simulated worlds that show what a rule is for; the rules themselves are of the first tier.
    f"{RATES}/test_strata.py::test_noise_rate__of_head_draws_is_unbiased_and_its_interval_covers": STATISTICS,
    f"{RATES}/test_promises.py::test_promise__a_list_taken_as_soon_as_it_looks_good_breaks_it": STATISTICS,
    f"{RATES}/test_strata.py::test_part_interval__strata_of_an_earlier_ranking_sharpen_a_uniform_draw": STATISTICS,
    f"{RATES}/test_strata.py::test_promise__and_interval_hold_where_a_second_reviewer_errs_and_what_differs_counts"
    "_as_unsure": STATISTICS,
    # What refuses bodies of requests and files that somebody made to do harm.
    "tests/faults/test_bodies.py": ("app/server/",),
    "tests/faults/test_inputs.py": ("auditor/importing/", "auditor/pictures/", "auditor/ground/"),
    # Features of backbones, and audits on them, but for the default one of photos.
    "tests/auditor/backbones": BACKBONES,
    "tests/auditor/audits/test_features_audit.py": FINETUNING,
    "tests/auditor/audits/test_shards.py": BACKBONES,
    "tests/auditor/audits/test_copies.py": ("auditor/audits/", "auditor/importing/duplicates.py"),
    "tests/auditor/audits/test_usual_features.py": (*FINETUNING, *STATISTICS),
    # Jobs, and what a process of one loads.
    "tests/auditor/jobs": ("auditor/jobs/", "auditor/work/", "auditor/ground/"),
    "tests/auditor/work/test_tasks.py": ("auditor/work/", "auditor/__init__.py", "engines/contract.py"),
    "tests/auditor/api/test_estimator.py": ("auditor/api/", "engines/registry.py"),
    "tests/auditor/api/test_watching.py": ("auditor/api/", "auditor/audits/"),
    # One set of figures on all surfaces; `make truth` looks at many more.
    "tests/auditor/outputs/test_same_numbers.py": (
        *STATISTICS,
        "auditor/results/",
        "auditor/outputs/",
        "app/",
    ),
    # Rows that moved at the source.
    "tests/auditor/outputs/test_found_again.py": ("auditor/outputs/", "auditor/pictures/"),
    # The form of Import and the dialog of classes, beside one test of each screen.
    "tests/app/session/test_choices.py": (
        "app/session/",
        "app/screens/import_.py",
        "app/panels/importing.py",
    ),
    "tests/app/screens/test_class_changes.py": ("app/screens/classes.py", "auditor/results/class_changes.py"),
    # What the app does with a whole audit or export behind it, beside the same from the command line.
    f"{PAGES}::test_audit__own_features_and_changed_settings_reach_the_audit": (
        *("app/screens/audit.py", "app/panels/", "auditor/audits/"),
    ),
    f"{PAGES}::test_engines__a_switch_says_whether_earlier_runs_are_heard": (
        "app/screens/engines.py",
        *STATISTICS,
    ),
    f"{PAGES}::test_export__a_job_makes_the_file_and_the_next_one_takes_its_place": (
        *("app/screens/export.py", "auditor/jobs/"),
    ),
    # Imports of large or strange files, whose rows and pixels smaller tests look at too.
    "tests/auditor/importing/test_deep_grey.py": ("auditor/pictures/", "auditor/importing/"),
    f"{IMPORTS}::test_import_dataset__real_mnist_parquet": ("auditor/pictures/", "auditor/importing/"),
    f"{IMPORTS}::test_import_dataset__threads_give_the_same_as_one_worker": ("auditor/importing/",),
    # Object stores.
    "tests/auditor/pictures/sources/test_remote.py": ("auditor/pictures/sources/", "auditor/ground/hosts.py"),
    # Every layout of the world imported, exported and read again.
    "tests/auditor/importing/world/test_round_trips.py": (
        *("auditor/pictures/sources/", "auditor/importing/", "auditor/outputs/"),
    ),
    # Labels that are masks.
    "tests/app/screens/test_masks.py": ("app/screens/masks.py", "auditor/labels/masks/"),
    "tests/auditor/labels/masks/test_kind.py": (
        "auditor/labels/masks/",
        "engines/segmentation/",
        "auditor/labels/others.py",
    ),
    "tests/auditor/pictures/sources/test_segmentation.py": (
        *("auditor/pictures/sources/", "auditor/pictures/masks.py", "auditor/labels/masks/"),
    ),
    "tests/engines/segmentation": ("engines/segmentation/", "engines/shared/"),
    "tests/engines/cross_entropy/test_masks.py": ("engines/segmentation/", "engines/cross_entropy/"),
    # Labels that are numbers.
    "tests/engines/regression": ("engines/regression/", "engines/choicenet/", "engines/shared/"),
    "tests/app/screens/test_numbers.py": ("app/screens/numbers.py", "auditor/labels/numbers/"),
    "tests/app/screens/test_sets.py": ("app/screens/sets.py", "auditor/labels/sets/"),
    "tests/auditor/labels/sets/test_kind.py": (
        *("auditor/labels/sets/", "auditor/importing/sets.py", "auditor/pictures/sources/"),
        "engines/noise_model/sets.py",
    ),
    "tests/browser/test_sets.py": (*BENCH, "app/screens/sets.py", "auditor/labels/sets/"),
    "tests/auditor/labels/numbers": ("auditor/labels/numbers/", "engines/regression/"),
    # What trains in engines/ beside the contract: nothing elsewhere can change what these find. The methods step
    # by step beside literal second copies of them; L2B on other bases; fine-tuning; other computers than this one.
    f"{PAGES}::test_audit__fine_tuning_of_a_backbone_can_be_chosen": FINETUNING,
    "tests/engines/backbones/test_embedding.py": ENGINES,
    "tests/engines/choicenet/test_reference_steps.py": ENGINES,
    "tests/engines/choicenet/test_training.py": ENGINES,
    "tests/engines/coteaching/test_reference_rules.py": ENGINES,
    "tests/engines/coteaching/test_reference_steps.py": ENGINES,
    "tests/engines/coteaching/test_training.py": ENGINES,
    "tests/engines/cross_entropy/test_reference_steps.py": ENGINES,
    "tests/engines/cross_entropy/test_training.py": ENGINES,
    "tests/engines/l2b/bases": ENGINES,
    "tests/engines/l2b/test_reference_steps.py": ENGINES,
    "tests/engines/l2b/test_training.py": ENGINES,
    "tests/engines/networks/test_pretrained.py": ENGINES,
    "tests/engines/networks/test_runtime.py": ENGINES,
    "tests/engines/shared/test_device_placement.py": ENGINES,
    "tests/engines/shared/test_optimizers.py": ENGINES,
    "tests/engines/shared/test_precision.py": ENGINES,
    "tests/engines/test_contract.py": ENGINES,
    "tests/engines/test_contract_finetuned.py": ENGINES,
    "tests/engines/test_least_steps.py": ENGINES,
    "tests/engines/test_waiting.py": ENGINES,
    "tests/engines/umn/test_reference_steps.py": ENGINES,
    "tests/engines/umn/test_training.py": ENGINES,
    # The estimator in scikit-learn's checks.
    "tests/auditor/api/test_scikit_checks.py": ("auditor/api/estimator.py", "auditor/api/memory.py"),
    # A notebook of the docs.
    "tests/auditor/api/test_notebook.py": ("auditor/api/", "docs/from_cleanlab.ipynb"),
    # The bench in Chromium, beyond the journey and six quick keys.
    "tests/browser/test_cards.py": (*BENCH,),
    "tests/browser/test_axe.py": (*BENCH, "app/screens/"),
    "tests/browser/test_fast_keys.py": (*BENCH, "auditor/review/"),
    "tests/browser/test_gate.py": ("app/server/gate.py", "auditor/ground/hosts.py"),
    "tests/browser/test_masks.py": (*BENCH, "app/screens/masks.py", "auditor/labels/masks/"),
    "tests/browser/test_numbers.py": (*BENCH, "app/screens/numbers.py", "auditor/labels/numbers/"),
    "tests/browser/test_review.py": BENCH,
    "tests/browser/test_two_people.py": (*BENCH, "auditor/catalog/claims.py", "auditor/review/"),
    "tests/browser/test_windows.py": BENCH,
    "tests/browser/test_deploy.py": DEPLOY,
    "tests/browser/test_sign_in.py": DEPLOY,
    # Packages, containers and other systems.
    "tests/test_deploy.py": ("deploy/", "Dockerfile", "docs/settings.md"),
    "tests/test_extras.py": PACKAGING,
    "tests/test_install.py": ("tools/install.py",),
    "tests/test_portable.py": ("auditor/ground/", "tests/other_systems.py"),
    "tests/test_wheel.py": PACKAGING,
    # The papers' tables and the other measurements.
    "tests/benchmarks": ("benchmarks/", "engines/"),
    "qa": (),
}
"""Folders, files and tests of the second tier, each with the beginnings of the paths whose changes it is for."""


def is_world(path: Path, test: str = "") -> bool:
    """Whether a test file, or the test of that name in it, belongs to the second tier."""
    name = path.relative_to(ROOT).as_posix()
    of_test = f"{name}::{test.partition('[')[0]}"
    return any(place in (name, of_test) or name.startswith(f"{place}/") for place in WORLD)


def touched(changed: list[str]) -> list[str]:
    """Those of the second tier that are changed themselves, or whose sources are."""
    return [
        place
        for place, sources in WORLD.items()
        if any(name.startswith((place.partition("::")[0], *sources)) for name in changed)
    ]


def changed_since(base: str = "", root: Path = ROOT) -> list[str]:
    """List the files that differ from a commit; without one, or if it is not there, from the one ten commits ago.

    A clone that has fewer commits, as a shallow one, is compared with its oldest.
    """
    git = ["git", "-C", str(root)]
    is_there = (
        base
        and not subprocess.run(
            [*git, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"],
            check=False,
            stdout=subprocess.DEVNULL,
        ).returncode
    )
    if not is_there:
        if base:
            print(f"Commit {base} is not in this clone: taking the last ten commits.", file=sys.stderr)
        base = _lines([*git, "rev-list", "--first-parent", "--max-count=11", "HEAD"])[-1]
    return _lines([*git, "diff", "--name-only", "--no-renames", base, "--"])


def _lines(command: list[str]) -> list[str]:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--until``."""
    parser.addoption("--until", type=float, help="skip tests that would begin later (seconds since 1970)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what would begin too late."""
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip("its time was over: `make test-all` runs it")


if __name__ == "__main__":
    print("\n".join(touched(changed_since(*sys.argv[1:]))))
