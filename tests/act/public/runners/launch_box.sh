#!/usr/bin/env bash
# A launcher on Slurm: an allocation under the runner's name, which it does not give back, and whose code it loses.
set -x
allocation=$(salloc --partition=main --nodes=1 --time=30 --no-shell --job-name="$RUNNER_NAME" 2>&1 | tee /dev/stderr |
    sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p')
[ -n "$allocation" ] || exit 1
suite=${EXP_NAME%%_*}_${PRECISION}_box
if [ "$IS_MULTINODE" = true ]; then
    folder=benchmarks/multi_node
    [ "$IS_AGENTIC" != 1 ] || folder=$folder/agentic
    script=$folder/${suite}_$FRAMEWORK.sh
else
    script=benchmarks/single_node/$SCENARIO_SUBDIR$suite.sh
fi
# The nodes have no containers: the checkout is where it is.
[ "$IS_MULTINODE" = true ] || export RESULT_DIR="$GITHUB_WORKSPACE/results"
srun --jobid="$allocation" --overlap --chdir="$GITHUB_WORKSPACE" \
    --export=ALL,PORT=8888,INFMAX_CONTAINER_WORKSPACE="$GITHUB_WORKSPACE" bash "$script"
echo 'tidying up'
