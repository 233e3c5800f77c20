"""A program: follows a job that trains until it is stopped, with standard input as its own terminal."""

import fcntl
import signal
import sys
import termios

import pytest

from tests.cli.jobs.sagemaker_account import NAME, Aws, take_the_place_of_aws
from tests.cli.running import GOOD
from tests.core.fake_jobs import TRAINING
from trainium_cli.main import trn
from trainium_core.engines.sagemaker.jobs import follow

if __name__ == "__main__":
    fcntl.ioctl(sys.stdin, termios.TIOCSCTTY, 0)  # so that the kernel makes a signal of Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run behind `&` in a script
    aws = Aws()
    aws.jobs.states = (TRAINING,)
    take_the_place_of_aws(aws, pytest.MonkeyPatch())
    follow.POLL_SECONDS = 0.05
    trn(["sagemaker", "logs", NAME, "--follow", *GOOD], prog_name="trn")
