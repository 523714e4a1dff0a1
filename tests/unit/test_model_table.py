"""Models are known by their names, in all the forms that names have."""

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline import Budget
from firnline.context.budget import as_budget, budget_of_model, check_windows
from firnline.errors import InputError
from firnline.log.model_table import NAME_CHARS_MAX, UNKNOWN, _table, _words, find_model
from firnline.log.tokens import count_tokens, counter

M = 1_048_576

KNOWN = {
    # OpenAI, with dates, providers, fine-tunes and Azure's spelling.
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "GPT-4o": 128_000,
    "gpt-4o-2024-11-20": 128_000,
    "chatgpt-4o-latest": 128_000,
    "openai/gpt-4o-mini-2024-07-18": 128_000,
    "azure/gpt-4o": 128_000,
    "openrouter/openai/gpt-4o:extended": 128_000,
    "ft:gpt-4o-mini-2024-07-18:acme::x1": 128_000,
    "ft:gpt-3.5-turbo-0125:acme:support:9x": 16_385,
    "ft:gpt-4o:llama-3.1-fans::x": 128_000,
    "gpt-4o-mini:ft-acme-2023-12-01": 128_000,
    "gpt-4": 8_192,
    "gpt-4-0613": 8_192,
    "gpt-4-32k-0613": 32_768,
    "gpt-4-turbo-2024-04-09": 128_000,
    "gpt-4-1106-preview": 128_000,
    "gpt-4.1-nano": 1_047_576,
    "gpt-4.1-2025-04-14": 1_047_576,
    "gpt-41-copilot": 1_047_576,
    "gpt-35-turbo": 16_385,
    "gpt-35-turbo-16k": 16_000,
    "gpt-3.5-turbo-instruct": 4_096,
    "gpt-5": 272_000,
    "gpt-5-mini-2025-08-07": 272_000,
    "gpt-5-chat-latest": 128_000,
    "gpt-5.1-codex-max": 272_000,
    "databricks-gpt-5-4-mini": 272_000,
    "gpt-5.4": 922_000,
    "gpt-5.6-sol-2026-07-09": 922_000,
    "global.openai.gpt-6-astra": 922_000,
    "gpt-6.1-sol": 922_000,
    "gpt-oss:20b": 131_072,
    "openai/gpt-oss-120b": 131_072,
    "openai.gpt-oss-120b-1:0": 131_072,
    "o1": 200_000,
    "o1-mini-2024-09-12": 128_000,
    "o3-mini-high": 200_000,
    "azure/o4-mini": 200_000,
    "openai.o3": 200_000,
    # Deployments that carry the model's name.
    "prod-gpt-4o-eu": 128_000,
    "acme_gpt-4.1_v2": 1_047_576,
    "gpt4o": 128_000,
    "gpt4o-mini-sweden": 128_000,
    "claude-prod": 200_000,
    "eu-claude-sonnet-5": 1_000_000,
    # Anthropic, also at Bedrock, Vertex and GitHub.
    "claude-3-5-sonnet-20241022": 200_000,
    "claude-3-haiku@20240307": 200_000,
    "claude-3.7-sonnet": 200_000,
    "claude-2.1": 200_000,
    "claude-instant-v1": 100_000,
    "anthropic/claude-sonnet-4": 200_000,
    "claude-sonnet-4-5@20250929": 200_000,
    "claude-sonnet-4-5[1m]": 1_000_000,
    "claude-haiku-4-5": 200_000,
    "claude-haiku-5-5": 1_000_000,
    "claude-opus-4-1": 200_000,
    "claude-opus-4.5": 200_000,
    "claude-opus-4-6-v1": 1_000_000,
    "claude-opus-4-8@default": 1_000_000,
    "claude-opus-5-5": 1_000_000,
    "us.anthropic.claude-3-5-sonnet-20241022-v2:0": 200_000,
    "us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0": 200_000,
    "anthropic.claude-sonnet-4-20250514-v1:0": 200_000,
    "arn:aws:bedrock:us-east-1:123:inference-profile/us.anthropic.claude-opus-5": 1_000_000,
    "vertex_ai/claude-mythos-5-1": 1_000_000,
    # Google and xAI.
    "gemini-2.5-pro": M,
    "gemini/gemini-3.5-flash-lite": M,
    "models/gemini-flash-latest": M,
    "publishers/google/models/gemini-4-argon": M,
    "gemini-1.5-pro-002": 2_097_152,
    "gemma2:9b": 8_192,
    "gemini-gemma-2-27b-it": 8_192,
    "google/gemma-3-27b-it:free": 131_072,
    "gemma3:1b": 32_768,
    "gemma-3n-e4b": 32_768,
    "gemma-4-31b-it": 262_144,
    "google.gemma-3-12b-it": 131_072,
    "grok-3-mini-fast": 131_072,
    "xai/grok-4-0709": 256_000,
    "grok-4.20-0309-reasoning": 1_000_000,
    "us.xai.grok-4.7": 500_000,
    # Meta, and what is made of it.
    "llama2": 4_096,
    "TheBloke/Llama-2-7B-Chat-GGUF": 4_096,
    "/models/llama-2-7b-chat.Q4_K_M.gguf": 4_096,
    "llama3:70b": 8_192,
    "meta-llama/Meta-Llama-3-8B-Instruct": 8_192,
    "meta.llama3-70b-instruct-v1:0": 8_192,
    "llama-3-8b-instruct-262k": 262_000,
    "llama3.1:8b-instruct-q4_K_M": 131_072,
    "accounts/fireworks/models/llama-v3p1-70b-instruct": 131_072,
    "us.meta.llama3-2-1b-instruct-v1:0": 131_072,
    "Llama-3.3-70B-Instruct-Turbo": 131_072,
    "llama-3.1-nemotron-70b-instruct": 131_072,
    "hermes-3-llama-3.1-405b": 131_072,
    "llama-4-scout-17b-16e-instruct": 10_485_760,
    "codellama:7b": 16_384,
    "llama-prompt-guard-2-22m": 512,
    # Qwen, DeepSeek, Kimi, GLM, MiniMax.
    "qwen/qwen3-235b-a22b-2507": 262_144,
    "qwen/qwen3-235b-a22b-2507:free": 262_144,
    "Qwen/Qwen3-235B-A22B-Instruct-2507": 262_144,
    "qwen.qwen3-235b-a22b-2507-v1:0": 262_144,
    "qwen3:8b": 40_960,
    "qwen3-coder:480b-cloud": 262_144,
    "qwen2.5:7b": 32_768,
    "Qwen/Qwen2.5-7B-Instruct-1M": 1_010_000,
    "qwen2p5-coder-32b-instruct-64k": 64_000,
    "lmstudio-community/Qwen2.5-Coder-14B-Instruct-GGUF": 32_768,
    "qwen3.6-35b-a3b": 262_144,
    "qwen-plus-latest": 997_952,
    "qwq:32b": 131_072,
    "dolphin-2-9-2-qwen2-72b": 32_768,
    "deepseek-chat": M,
    "deepseek-coder:6.7b": 16_384,
    "deepseek-r1:70b": 131_072,
    "us.deepseek.r1-v1:0": 131_072,
    "deepseek.v3-v1:0": 131_072,
    "deepseek-r1-distill-llama-70b": 131_072,
    "deepseek/deepseek-v3.2-exp": 163_840,
    "deepseek-v4p1-flash-1017": M,
    "moonshotai/kimi-k2-instruct-0905": 262_144,
    "kimi-k2p6": 262_144,
    "kimi-k3": M,
    "moonshot-v1-8k": 8_192,
    "z-ai/glm-4.6": 202_752,
    "glm-4.5v": 65_536,
    "glm-5p2": M,
    "minimax-m2.5": 196_608,
    "minimax-m1-80k": 1_000_000,
    # Mistral, Cohere, Amazon, Microsoft, and others.
    "mistral": 131_072,
    "mistral:7b-instruct-v0.2-q4_0": 32_768,
    "mistralai/Mistral-7B-Instruct-v0.1": 8_192,
    "mistral.mistral-large-2402-v1:0": 32_000,
    "mistral-small-latest": 262_144,
    "open-mistral-nemo": 131_072,
    "mixtral:8x22b": 65_536,
    "nous-hermes-2-mixtral-8x7b-dpo": 32_768,
    "codestral-latest": 131_072,
    "command-r-plus-08-2024": 128_000,
    "cohere.command-r-v1:0": 128_000,
    "command-a-03-2025": 256_000,
    "command": 4_096,
    "us.amazon.nova-pro-v1:0": 300_000,
    "amazon.nova-2-lite-v1:0": 1_000_000,
    "ai21.jamba-1-5-large-v1:0": 256_000,
    "phi3:14b-medium-128k-instruct": 128_000,
    "microsoft/phi-3-medium-4k-instruct": 4_000,
    "phi-4-mini-instruct": 131_072,
    "sonar": 128_000,
    "perplexity/sonar-pro": 200_000,
    "yi-34b-200k-capybara": 200_000,
    "granite-4-h-small": 131_072,
    "ibm/granite-3-3-8b-instruct": 131_072,
}

UNKNOWN_NAMES = [
    "",
    "prod",
    "my-deployment",
    "my-model-7b",
    "gpt",
    "gpt-prod",
    "gpt-4all",
    "gpt4all-13b",
    "chatgpt",
    "mygpt4o",
    "claudette",
    "jean-claudel",
    "ollama",
    "llamaindex-agent",
    "command-center-bot",
    "my-command-r",
    "nova",
    "supernova-pro",
    "o3de",
    "foo-o1",
    "go1",
    "demo3",
    "sonar-qube",
    "my-sonar",
    "grokking-deep-learning",
    "commander-a",
    "aphid-4",
    "step-3-classifier",
    "geminid",
    "mistralize",
    "kimono",
    "glmnet",
    "qwenty",
    "test-model",
    "openrouter/auto",
    "accounts/acme/deployedModels/x7",
    "ft:my-own:acme::1",
    "модель",
    "gpt-4oß",
    "模型-4o",
    "gpt-4o" + "x" * NAME_CHARS_MAX,
]


@pytest.mark.parametrize(("name", "window"), KNOWN.items())
def test_a_window_is_known_by_the_name(name, window):
    assert find_model(name).window_tokens == window


@pytest.mark.parametrize("name", UNKNOWN_NAMES)
def test_a_name_that_only_looks_like_a_model_is_unknown(name):
    assert find_model(name) == UNKNOWN
    assert find_model(name).window_tokens is None


@pytest.mark.parametrize(
    ("name", "encoding", "factor"),
    [
        ("gpt-4o", "o200k_base", 1.0),
        ("gpt-5.6-sol", "o200k_base", 1.0),
        ("gpt-35-turbo", "cl100k_base", 1.0),
        ("gpt-4-turbo", "cl100k_base", 1.0),
        ("gpt-6-sol", "o200k_base", 1.1),
        ("claude-opus-5", "o200k_base", 1.35),
        ("gemini-3-pro", "o200k_base", 1.15),
        ("mistral-large-4", "o200k_base", 1.25),
        ("prod", "o200k_base", 1.25),
    ],
)
def test_a_name_selects_the_tokenizer_and_its_margin(name, encoding, factor):
    assert (find_model(name).encoding, find_model(name).factor) == (encoding, factor)
    assert counter(name).factor == factor
    assert count_tokens("hello world", name).exact is (factor == 1.0)


def test_the_table_is_whole():
    text = resources.files("firnline.log").joinpath("models.txt").read_text("utf-8")
    names = [line.split()[0].lstrip("^=") for line in text.splitlines() if line[:1] not in "#["]
    names = [name for name in names if name]
    keys = [" ".join(word for word, _, _ in _words(name)) for name in names]
    assert len(names) == len(set(keys)) == len(_table()[0]), "no row twice"
    assert "# Date: 20" in text
    assert "Source: " in text
    for name in names:
        own = find_model(name)
        assert own.window_tokens, name
        assert own.encoding in ("o200k_base", "cl100k_base")
        assert 1.0 <= own.factor < 1.5


@given(st.text(max_size=300))
def test_any_name_has_an_answer(name):
    found = find_model(name)
    assert found.window_tokens is None or found.window_tokens > 0


# -- budgets ----------------------------------------------------------------------------------


def test_an_unknown_model_has_no_budget_of_its_own():
    for make in (Budget.of, as_budget):
        with pytest.raises(InputError, match=r"unknown model 'prod'.*Budget\(window_tokens="):
            make("prod")
        with pytest.raises(InputError, match=r"windows=\{'prod': \.\.\.\}"):
            make("prod")


def test_given_windows_come_before_known_ones():
    windows = {"prod": 64_000, "gpt-4": 128_000}
    assert Budget.of("prod", windows=windows) == Budget(64_000, 4_096, model="prod")
    assert as_budget("gpt-4", windows).window_tokens == 128_000
    assert as_budget("gpt-4o", windows).window_tokens == 128_000
    assert budget_of_model("prod", windows).window_tokens == 64_000
    assert not budget_of_model("prod", windows).is_whole


def test_without_a_window_the_budget_is_for_everything():
    budget = budget_of_model("prod")
    assert budget.is_whole
    assert budget.limit > 10_485_760, "larger than any window"


@pytest.mark.parametrize("windows", [{"m": 0}, {"m": "8192"}, {"m": True}, {1: 8_192}])
def test_windows_are_checked(windows):
    with pytest.raises(InputError, match=r"windows: .* expected tokens by a model's name"):
        check_windows(windows)
