"""Settings of engines: what is typed, checked, and told about them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from auditor.bridges import engine_bridge
from auditor.ground.errors import AuditFailedError
from engines.registry import ENGINES


def test_options_of__values_are_json_where_they_can_be() -> None:
    texts = ["umn.epochs=3", "umn.network=mlp", "l2b.clip_norm=0.5", "l2b.weights=null", "l2b.network=a=b"]
    assert engine_bridge.options_of(texts) == {
        "umn": {"epochs": 3, "network": "mlp"},
        "l2b": {"clip_norm": 0.5, "weights": None, "network": "a=b"},
    }


@pytest.mark.parametrize("text", ["epochs=2", "umn.epochs", "umn.=2", "umn"])
def test_options_of__another_form_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(AuditFailedError, match=text):
        engine_bridge.options_of([text])


@pytest.mark.parametrize(
    ("engines", "options", "near"),
    [
        (["l2b"], {"l2b": {"meta_batch": 32}}, "did you mean 'meta_batch_size'"),
        (["l2bb"], {}, "did you mean 'l2b'"),
        (["umn"], {"coteachin": {"epochs": 3}}, "did you mean 'coteaching'"),
        (["l2b"], {"l2b": {"zzz": 32}}, "it has augment"),
        (["zzz"], {}, "choose from"),
    ],
)
def test_configs__an_unknown_name_is_answered_with_the_nearest(
    engines: list[str], options: dict[str, dict[str, int]], near: str
) -> None:
    with pytest.raises(AuditFailedError, match=near):
        engine_bridge.configs(engines, "quick", options)


def test_configs__a_papers_data_set_takes_the_place_of_the_preset() -> None:
    options = {"l2b": {"paper": "cifar100", "epochs": 7}}
    found = engine_bridge.configs(["l2b", "umn"], "quick", options)
    assert (found["l2b"]["batch_size"], found["l2b"]["clip_norm"], found["l2b"]["epochs"]) == (256, 0.8, 7)
    assert found["umn"] == engine_bridge.configs(["umn"], "quick", {})["umn"]
    with pytest.raises(AuditFailedError, match="no data set 'svhn'; choose one of cifar10, cifar100"):
        engine_bridge.configs(["l2b"], "quick", {"l2b": {"paper": "svhn"}})
    with pytest.raises(AuditFailedError, match="Engine umn has no setting 'paper'"):
        engine_bridge.configs(["umn"], "quick", {"umn": {"paper": "cifar10"}})


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100", "isic2019"])
def test_configs__every_data_set_of_l2bs_paper_is_a_config(dataset: str) -> None:
    found = engine_bridge.configs(["l2b"], "quick", {"l2b": {"paper": dataset}})["l2b"]
    assert found["schedule"] == "cosine_to_zero"
    assert not found["train_on_trusted"]


def test_configs__settings_of_an_engine_that_is_not_chosen_are_refused() -> None:
    with pytest.raises(AuditFailedError, match="l2b has settings but is not chosen"):
        engine_bridge.configs(["umn"], "quick", {"l2b": {"epochs": 3}})


def test_train__a_config_of_another_version_is_refused_by_name() -> None:
    with pytest.raises(AuditFailedError, match="engine umn had the setting 'kl_warmup_epochs'"):
        engine_bridge.train(
            "umn",
            np.zeros((4, 1, 8, 8), dtype=np.uint8),
            np.array([0, 1, 0, 1]),
            2,
            config={"epochs": 1, "kl_warmup_epochs": 0},
            device="cpu",
        )


@pytest.mark.parametrize("trained_on", ["images", "features", "finetuned"])
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_settings_of__every_field_has_its_meaning_and_defaults(engine: str, trained_on: str) -> None:
    if ENGINES[engine].needs_features and trained_on == "images":
        return
    on_features, is_finetuned = trained_on != "images", trained_on == "finetuned"
    settings = engine_bridge.settings_of(engine, on_features=on_features, is_finetuned=is_finetuned)
    found = {one.name: one for one in settings}
    assert list(found) == [field.name for field in dataclasses.fields(ENGINES[engine].config_type)]
    assert [one.name for one in found.values() if not one.meaning] == []
    for preset in engine_bridge.PRESETS:
        is_trained = is_finetuned and not engine_bridge.needs_features(engine)
        backbone = {engine: engine_bridge.Pretrained("auto", None, None)} if is_trained else None
        config = engine_bridge.configs([engine], preset, {}, on_features=on_features, finetuned=backbone)[
            engine
        ]
        assert {name: one.defaults[preset] for name, one in found.items()} == config


def test_settings_of__a_meaning_is_the_text_below_the_field() -> None:
    found = {one.name: one for one in engine_bridge.settings_of("l2b")}
    assert found["meta_batch_size"].meaning.startswith("Samples of a meta batch")
    assert found["batch_size"].meaning.startswith("Samples per step")
    assert (found["epochs"].kind, found["weights"].kind) == ("a whole number", "text or null")


def test_engines_on__an_engine_without_a_place_in_the_order_comes_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_bridge, "ENGINE_ORDER", ("l2b", "gone"))
    assert engine_bridge.engines_on("masks") == ["cross_entropy"]
    assert [choice.name for choice in engine_bridge.engine_choices()] == [
        "l2b",
        *(name for name in ENGINES if name != "l2b"),
    ]
