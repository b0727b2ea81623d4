"""Families of models, by the names that providers and gateways give them."""

import pytest

from eval_pipeline.providers.families import families_of


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("claude-sonnet-4-6-20250929", {"Claude"}),
        ("us.anthropic.claude-3-haiku-20240307-v1:0", {"Claude"}),
        ("anthropic/claude-3.5-sonnet", {"Claude"}),
        ("gpt-4o-2024-08-06", {"GPT"}),
        ("openai/gpt-oss-20b", {"GPT"}),
        ("o3-mini", {"GPT"}),
        ("o1", {"GPT"}),
        ("ft:gpt-4o-mini:acme", {"GPT"}),
        ("gemini-2.5-pro", {"Gemini"}),
        ("google/gemma-2-9b-it", {"Gemini"}),
        ("llama3.2:1b", {"Llama"}),
        ("meta-llama/Llama-3.3-70B-Instruct", {"Llama"}),
        ("TinyLlama/TinyLlama-1.1B", {"Llama"}),
        ("mixtral-8x7b", {"Mistral"}),
        ("Qwen/Qwen2.5-72B-Instruct", {"Qwen"}),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", {"DeepSeek", "Llama"}),
        ("phi-4", {"Phi"}),
        ("grok-3", {"Grok"}),
        ("SmolLM2-135M-Instruct", {"SmolLM"}),
        ("amazon.nova-pro-v1:0", {"Nova"}),
        # Names that only look like one:
        ("innovator-1", set()),
        ("delphi-2", set()),
        ("foo3", set()),
        ("my-app", set()),
        ("", set()),
    ],
)
def test_families(name: str, families: set[str]) -> None:
    assert families_of(name) == families


def test_several_names_tell_together() -> None:
    assert families_of("my-gateway-model", "claude-haiku-4-5") == {"Claude"}
