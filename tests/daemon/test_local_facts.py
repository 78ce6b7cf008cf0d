"""Facts of the engine that nobody named: said of the right one, and believed after what that says itself."""

from dataclasses import replace

from pinchpoint.daemon.joining import Joiner
from pinchpoint.daemon.local_facts import with_local
from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, ReplicaReading

LOCAL = EngineFacts(model="/models/Qwen2.5-13B-Instruct", max_num_seqs=16, max_model_len=8192)
NAMELESS = replace(LOCAL, model=None)


def test_it_is_said_of_the_engine_that_serves_the_model_by_path_or_name_and_of_its_replicas() -> None:
    for model in ("/models/Qwen2.5-13B-Instruct", "Qwen/Qwen2.5-13B-Instruct", "Qwen2.5-13B-Instruct"):
        facts, odd = with_local(EngineFacts(), {model}, LOCAL, alone=False)
        assert (facts.max_num_seqs, facts.origins["max_num_seqs"], odd) == (16, "settings", ())


def test_of_another_engine_nothing_is_said_and_where_it_is_the_only_one_that_is_told() -> None:
    assert with_local(EngineFacts(), {"llama"}, LOCAL, alone=False) == (EngineFacts(), ())
    facts, (odd,) = with_local(EngineFacts(), {"llama"}, LOCAL, alone=True)
    assert facts.max_num_seqs is None
    assert odd == "local_engine is about /models/Qwen2.5-13B-Instruct, this engine serves llama: it is not used"


def test_without_a_model_it_is_said_of_an_engine_that_is_alone() -> None:
    assert with_local(EngineFacts(), {"llama"}, NAMELESS, alone=True)[0].max_num_seqs == 16
    assert with_local(EngineFacts(), {"llama"}, NAMELESS, alone=False) == (EngineFacts(), ())


def test_what_the_engine_runs_with_counts_and_a_setting_that_says_otherwise_is_named() -> None:
    own = EngineFacts(kind="").completed(EngineFacts(kind="", max_num_seqs=256, max_model_len=8192), "command_line")
    facts, odd = with_local(own, (), LOCAL, alone=True)
    assert facts.max_num_seqs == 256
    assert odd == ("max_num_seqs is 16 in local_engine and 256 by command line, which counts; correct the setting",)


def test_a_reload_that_changes_it_changes_the_readings() -> None:
    target = EngineTarget(engine="chat", url="http://127.0.0.1:8000", facts=EngineFacts(kind=""))
    reading = EngineReading(engine="chat", at=1.0, replicas=(ReplicaReading(model="Qwen2.5-13B-Instruct"),))
    joiner = Joiner()
    for slots in (16, 32):
        joiner.expect([target], replace(LOCAL, max_num_seqs=slots))
        (joined,) = joiner.join([reading], (), ())
        assert joined.facts.max_num_seqs == slots
