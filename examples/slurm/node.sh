#!/bin/bash
# One task of Slurm for each node: torchrun with one process for each logical NeuronCore of the node.
#
#     srun --nodes=2 --ntasks-per-node=1 --exclusive --cpu-bind=none --kill-on-bad-exit=1 bash -l node.sh SCRIPT...
#
# The login shell (-l) sets all variables here: /etc/profile.d/trn.sh and trn-slurm.sh are on every node. It also
# activates the environment of the image, or keeps yours if VIRTUAL_ENV is set.
exec torchrun --nnodes="$TRN_NODES" --node_rank="$TRN_NODE_RANK" --nproc_per_node="$TRN_NEURON_CORES" \
  --master_addr="$HEAD_NODE" --master_port="$TRN_RENDEZVOUS_PORT" "$@"
