"""Keys and seconds that a review takes, by confusion cards and one by one, in a real browser.

    python -m benchmarks.review_keys [--home FOLDER] [--out FILE]

The photos are the folder ``clothing`` of ``images.folder()``, 341 of ten classes, of which ``ERRORS`` are given
another class: ``SIMILAR`` of them one that looks like theirs. A scripted reviewer checks every suspect of one
audit, once on cards and once one by one ("queue"); the perfect one sees the true class, the other one errs on
``ERRING`` of the pictures, on the same ones both times. ``--home``: an ``AUDITOR_HOME`` with that audit, else it is
made there.

Keys, clicks and looks are counted. ``app_seconds`` is how long it took when each key came as soon as the app could
take it. ``person_seconds`` adds what a person takes, by the keystroke-level model (Card, Moran and Newell 1980):
``KEY_S`` a key or click, ``DECISION_S`` to make up one's mind on a single picture or on a card, ``GLANCE_S`` for
each picture of a card.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import app_million, images
from tools.pictures import FLAGS

NAME = "photos"
ERRORS, SIMILAR, ERRING = 60, 0.7, 0.05
PAIRS = ("shorts pants", "longsleeve t-shirt", "skirt dress", "hat shoes")
LOOKS_LIKE = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}
LOOKS_LIKE |= {"shirt": "longsleeve", "outwear": "longsleeve"}
KEY_S, DECISION_S, GLANCE_S = 0.28, 1.35, 0.3
WAIT_MS = 120_000
LOOK_MS = 700
"""A person looks at a card before a key; one that comes with the card counts for nothing (600 ms)."""
READY = "[data-testid=bench][data-state=ready]"


def main() -> None:
    """Make or take the audit, review it four times, write the JSON and its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "review_keys.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = options.home or Path(temporary) / "made"
        make(home)
        found: dict[str, Any] = {"machine": app_million.machine(), "trials": []}
        for errs in (0.0, ERRING):
            for mode in ("queue", "cards"):
                copy = Path(temporary) / f"{mode}-{errs}"
                shutil.copytree(home, copy)
                os.environ["AUDITOR_HOME"] = str(copy)
                with app_million.serving() as (url, _):
                    found["trials"].append({"mode": mode, "errs": errs, **review(url, mode, errs)})
                print(json.dumps(found["trials"][-1]), flush=True)
    options.out.write_text(json.dumps(found, indent=2) + "\n")
    options.out.with_suffix(".md").write_text(page(found))


def make(home: Path) -> None:
    """The photos with planted errors and one audit of them, as a user makes both; nothing where it is there."""
    os.environ["AUDITOR_HOME"] = str(home)
    if (home / "catalog.db").exists():
        return
    from auditor.audits import plan, usual_features, worker
    from auditor.importing import imports

    root = images.folder() / "clothing"
    files = sorted(file for file in root.rglob("*") if file.is_file())
    names, rng = sorted({file.parent.name for file in files}), random.Random(0)
    wrong = set(rng.sample(range(len(files)), ERRORS))
    home.mkdir(parents=True, exist_ok=True)
    table = home / "photos.csv"
    with table.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["path", "label", "true"])
        for number, file in enumerate(files):
            true = given = file.parent.name
            if number in wrong:
                others = [name for name in names if name != true]
                given = LOOKS_LIKE[true] if rng.random() < SIMILAR else rng.choice(others)
            rows.writerow([file.relative_to(root), given, true])
    imports.import_dataset(table, name=NAME, root=str(root), true_label_column="true")
    worker.run_audit(
        plan.plan_audit(NAME, preset="quick", features=usual_features.choose_features(NAME, None)[0])
    )


class Reviewer:
    """Sees the true class, or errs: takes the given label for right where it is wrong, and the other way round."""

    def __init__(self, errs: float) -> None:
        from auditor.catalog import datasets
        from auditor.catalog.db import session
        from auditor.pictures import cache

        with session() as open_session:
            dataset = datasets.get(open_session, NAME)
            self.names = dataset.class_names
            self.given = datasets.given_labels(open_session, dataset.id)
        true = cache.true_labels(dataset)
        assert true is not None, "the audit's dataset has no true labels"
        self.true = [int(label) for label in true]
        rng = random.Random(1)
        self._errs = [rng.random() < errs for _ in self.given]

    def sees(self, sample: int, suggested: int) -> int:
        """The class of a sample as this person sees it, beside a suggestion."""
        true, given = self.true[sample], int(self.given[sample])
        if not self._errs[sample]:
            return true
        return suggested if true == given else given


def review(url: str, mode: str, errs: float) -> dict[str, Any]:
    """Check every suspect; what it took, and what is wrong afterwards."""
    from playwright.sync_api import sync_playwright

    person, count = Reviewer(errs), Counter[str]()
    chromium = os.environ.get("AUDITOR_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        view = browser.new_page(viewport={"width": 1440, "height": 900})
        kept = "cards" if mode == "cards" else "card"
        view.add_init_script(f"sessionStorage.setItem('auditor-mode', '{kept}')")
        view.goto(f"{url}/suspects?dataset={NAME}")
        view.locator("[data-testid=card], [data-testid=confusion]").first.wait_for(timeout=WAIT_MS)
        view.wait_for_timeout(2_000)
        began = time.perf_counter()
        while not view.get_by_test_id("empty").is_visible():
            if view.get_by_test_id("confusion").is_visible():
                on_card(view, person, count)
            elif view.get_by_test_id("card").is_visible():
                on_picture(view, person, count)
            view.locator(READY).wait_for(timeout=WAIT_MS)
        seconds = time.perf_counter() - began
        browser.close()
    hands = count["keys"] + count["clicks"]
    thinks = DECISION_S * (count["cards"] + count["single"]) + GLANCE_S * count["glances"]
    return {
        **count,
        "app_seconds": round(seconds, 1),
        "person_seconds": round(KEY_S * hands + thinks, 1),
        **outcome(person),
    }


def on_card(view: Any, person: Reviewer, count: Counter[str]) -> None:
    """Say of each what is right where that is not what most are, settle the card."""
    tiles = view.get_by_test_id("card-tile")
    samples = [int(one) for one in tiles.evaluate_all("all => all.map((one) => one.dataset.sample)")]
    suggested = tiles.evaluate_all("all => all.map((one) => Number(one.dataset.suggested))")
    seen = [person.sees(*one) for one in zip(samples, suggested, strict=True)]
    is_given = [label == int(person.given[sample]) for sample, label in zip(samples, seen, strict=True)]
    is_suggested = [one == two for one, two in zip(seen, suggested, strict=True)]
    count.update(cards=1, glances=len(samples))
    most = sum(is_given) > len(samples) / 2  # then it is quicker to tick the few that are wrong
    keeps = all(is_given)
    if most and not keeps:
        view.keyboard.press("i")
        count["keys"] += 1
    for place, (stays, changes) in enumerate(zip(is_given, is_suggested, strict=True)):
        wanted = 1 if stays else 0 if changes else 2
        for _ in range(0 if keeps else 2 if wanted == 2 else int(wanted != most)):
            tiles.nth(place).click()
            count["clicks"] += 1
    before, key = view.locator(".picks").get_attribute("data-samples"), "q" if keeps else "Enter"
    key = key if any(is_given) or any(is_suggested) else "p"  # none of them fits: later, one by one
    until_gone = (
        "before => { const find = (root) => { for (const one of root.querySelectorAll('*')) {"
        " if (one.matches('.picks')) return one; const inside = one.shadowRoot && find(one.shadowRoot);"
        " if (inside) return inside; } return null; }; return find(document)?.dataset.samples !== before; }"
    )
    view.wait_for_timeout(LOOK_MS)
    while True:
        view.keyboard.press(key)
        count["keys"] += 1
        try:  # before all of it was in view a key settles nothing
            view.wait_for_function(until_gone, arg=before, timeout=1_500)
            return
        except Exception as error:  # Playwright's own, which this file does not import
            if "Timeout" not in type(error).__name__:
                raise


def on_picture(view: Any, person: Reviewer, count: Counter[str]) -> None:
    """One key: keep, take the suggestion, or the digit of another class."""
    card = view.get_by_test_id("card")
    sample = int(card.get_attribute("data-sample"))
    suggested = person.names.index(view.locator(".side.suggested b").inner_text())
    seen = person.sees(sample, suggested)
    key = "q" if seen == int(person.given[sample]) else "w" if seen == suggested else str((seen + 1) % 10)
    view.keyboard.press(key)
    count.update(keys=1, single=1)
    gone = f"[data-testid=card]:not([data-sample='{sample}']), [data-testid=empty]"
    view.locator(gone).first.wait_for(timeout=WAIT_MS)


def outcome(person: Reviewer) -> dict[str, int]:
    """What the verdicts did to the labels."""
    from auditor.catalog import reviews
    from auditor.catalog.db import session

    with session() as open_session:
        decided = reviews.decisions(open_session, 1)
    after = {sample: int(label) for sample, label in enumerate(person.given)}
    after |= {sample: row.label for sample, row in decided.items() if row.label is not None}
    was = sum(int(given) != true for given, true in zip(person.given, person.true, strict=True))
    wrong = {sample for sample, label in after.items() if label != person.true[sample]}
    harmed = sum(int(person.given[sample]) == person.true[sample] for sample in wrong)
    return {"checked": len(decided), "wrong_before": was, "wrong_after": len(wrong), "made_wrong": harmed}


def page(found: dict[str, Any]) -> str:
    """The results page."""
    rows = []
    for one in found["trials"]:
        who = f"errs on {100 * one['errs']:.0f} %" if one["errs"] else "never errs"
        hands = one["keys"] + one.get("clicks", 0)
        times = f"{one['person_seconds']:.0f} | {one['app_seconds']:.0f}"
        wrong = f"{one['wrong_before']} → {one['wrong_after']} | {one['made_wrong']}"
        looked = f"{one.get('cards', 0)} | {one.get('single', 0)} | {one['checked']}"
        rows.append(f"| {who} | {one['mode']} | {hands} | {looked} | {times} | {wrong} |")
    load = found["machine"]["load_before"][0]
    return f"""# Cards against one by one

`python -m benchmarks.review_keys`: a scripted reviewer checks every suspect of one audit of 341 photos in Chromium,
{ERRORS} of them with planted errors, {100 * SIMILAR:.0f} % of those into a class that looks alike. A person's
seconds are by the keystroke-level model ({KEY_S} s a key or click, {DECISION_S} s a decision, {GLANCE_S} s a
picture of a card). The app's were measured with each key as soon as the app took it (two cores, load {load}).

| reviewer | way | keys, clicks | cards | single | checked | person's s | app's s | wrong labels | made wrong |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


if __name__ == "__main__":
    main()
