"""``python model.py FOLDER``, with vLLM's own Python: a small model of random weights and a tokenizer. No download.

Ten layers of 768: 129 MB, and on two cores some 7 ms a token alone and 30 ms with sixteen beside it, so it queues and
saturates like a GPU's engine in miniature. A smaller one is too quick: the API server would be what holds it up.
"""

import sys
import sysconfig
from pathlib import Path

VOCABULARY = 2048
MAX_POSITIONS = 2048  # so this is the longest that the engine will take
TRAINED_ON = 150  # of the standard library's modules
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tokenizer(folder: Path) -> None:
    """Byte-level BPE, learnt from the standard library's sources."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:TRAINED_ON]
    tokenizer.train([str(source) for source in sources], trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=SPECIAL[2],
        pad_token=SPECIAL[0],
        chat_template=CHAT,
        model_max_length=MAX_POSITIONS,
    ).save_pretrained(folder)


def make_model(folder: Path) -> None:
    """Random weights, the same each time."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=10,
        num_attention_heads=12,
        num_key_value_heads=4,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
    )
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    make_tokenizer(Path(sys.argv[1]))
    make_model(Path(sys.argv[1]))
