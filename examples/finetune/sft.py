"""Fine-tunes a causal language model of Hugging Face with LoRA, and resumes from its newest checkpoint.

    python sft.py --model MODEL --data DATA                             one process
    torchrun --nproc_per_node=2 sft.py --model MODEL --data DATA        two processes on this machine
    trn run job.toml                                                    one process per logical NeuronCore

docs/guides/example-finetune.md explains the lines that differ from CUDA.
"""

import argparse
import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from datasets import Dataset, load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer

notice_received = False


class JobCallback(TrainerCallback):
    """Prints the progress lines of a job, and stops the training after a notice."""

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.tokens, self.time = 0, time.monotonic()

    def on_step_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step % arguments.logging_steps:
            return
        noticed = torch.tensor(float(notice_received), device=arguments.device)
        if dist.is_initialized():
            dist.all_reduce(noticed)  # All processes stop after the same step.
        if noticed.item():
            control.should_save = control.should_training_stop = True

    def on_log(self, _arguments: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        if "loss" not in logs or not state.is_world_process_zero:
            return
        now = time.monotonic()
        tokens = round(logs["num_tokens"])  # of all processes since the start, without padding
        new = f"tokens={tokens - self.tokens} seconds={now - self.time:.6f}"
        print(f"TRN step={state.global_step} loss={logs['loss']:.6f} {new}", flush=True)
        self.tokens, self.time = tokens, now


def main() -> None:
    options = read_options()
    signal.signal(signal.SIGUSR1, remember_notice)
    arguments = SFTConfig(
        output_dir=os.environ.get("TRN_CHECKPOINT_DIR", "checkpoints"),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        learning_rate=options.learning_rate,
        save_steps=options.save_every,
        logging_steps=options.report_every,
        seed=options.seed,
        # Every batch has the same shape: a new shape needs a new program on a NeuronCore.
        max_length=options.length,
        pad_to_multiple_of=options.length,
        dataloader_drop_last=True,
        bf16=options.precision == "bfloat16",
        optim="adamw_torch",
        activation_checkpointing=False,
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=False,
        use_cpu=torch.accelerator.current_accelerator() is None,
        disable_tqdm=True,
        report_to="none",
    )
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(options.model, dtype=getattr(torch, options.precision)),
        processing_class=AutoTokenizer.from_pretrained(options.model),
        train_dataset=read_data(options.data),
        # Without dropout, a step depends on nothing but weights, optimizer and data, so that a resumed run repeats it.
        peft_config=LoraConfig(r=options.rank, lora_alpha=2 * options.rank, target_modules="all-linear"),
        args=arguments,
    )
    trainer.remove_callback(PrinterCallback)  # JobCallback prints the losses.
    trainer.add_callback(JobCallback())
    if trainer.is_world_process_zero():
        trained = trainer.model.num_parameters(only_trainable=True)
        print(f"{arguments.device}, processes: {arguments.world_size}, trained parameters: {trained:,}", flush=True)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(arguments.output_dir))
    if trainer.state.global_step == options.steps:
        trainer.save_model(str(Path(os.environ.get("TRN_OUTPUT_DIR", "outputs")) / "adapter"))
    elif trainer.is_world_process_zero():
        print(f"stopped by SIGUSR1, saved after step {trainer.state.global_step}", flush=True)
    if dist.is_initialized():
        dist.barrier()  # Meanwhile threads of gloo release their tensors, without which the next line can block.
        dist.destroy_process_group()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fine-tune a causal language model with LoRA.")
    parser.add_argument("--model", required=True, help="a folder, or a name on the Hugging Face Hub")
    parser.add_argument("--data", required=True, help="a folder with files *.jsonl, or a name on the Hub")
    parser.add_argument("--steps", type=int, default=1000, help="in total, including those before a resume")
    parser.add_argument("--batch", type=int, default=1, help="sequences in a step of one process")
    parser.add_argument("--length", type=int, default=1024, help="tokens in a sequence: longer ones are cut")
    parser.add_argument("--rank", type=int, default=16, help="of the matrices that LoRA trains")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--report-every", type=int, default=10, help="steps between progress lines")
    parser.add_argument("--save-every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def read_data(place: str) -> Dataset:
    """Examples in a format of TRL: with a text, a prompt and its completion, or messages."""
    if files := sorted(str(file) for file in Path(place).glob("*.jsonl")):
        return load_dataset("json", data_files=files, split="train")
    return load_dataset(place, split="train")


def remember_notice(_signal: int, _frame: FrameType | None) -> None:
    global notice_received
    notice_received = True


if __name__ == "__main__":
    main()
