"""Writes a tiny model with random weights, its tokenizer and data, to try sft.py without a download.

python tiny.py FOLDER
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEXT = Path(__file__).resolve().parents[1] / "lm" / "persuasion.txt"
END = "<|endoftext|>"


def main(folder: Path) -> None:
    tokenizer = byte_tokenizer()
    tokenizer.save_pretrained(folder / "model")
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder / "model")
    (folder / "data").mkdir(exist_ok=True)
    with (folder / "data" / "persuasion.jsonl").open("w") as file:
        for paragraph in TEXT.read_text().split("\n\n"):
            if text := " ".join(paragraph.split()):
                print(json.dumps({"text": text}), file=file)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer whose tokens are the bytes and the end of a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE(vocab={byte: number for number, byte in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
