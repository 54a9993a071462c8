#!/usr/bin/env bash
# A launcher of containers: the checkout at /workspace, a fixed list of variables, and a container that it leaves behind.
export GPU_COUNT="${GPU_COUNT:-$TP}"
set -x
# The image is empty: the node's own system, tools and Python stand in it.
python=$(python3 -c 'import sys; print(sys.base_prefix)')
podman run --detach --network=host --name=bmk-server \
    -v /usr:/usr:ro -v /etc:/etc:ro -v "$SWEEPCTL_TOOLS:$SWEEPCTL_TOOLS" -v "$python:$python:ro" \
    -v "$GITHUB_WORKSPACE:/workspace/" -w /workspace/ \
    -e HF_TOKEN -e HF_HUB_CACHE -e HF_HUB_OFFLINE -e MODEL -e TP -e PP_SIZE -e DCP_SIZE -e PCP_SIZE -e GPU_COUNT -e CONC \
    -e MAX_MODEL_LEN -e ISL -e OSL -e RUN_EVAL -e EVAL_ONLY -e RUNNER_TYPE -e RESULT_FILENAME -e RANDOM_RANGE_RATIO \
    -e PORT=8888 -e PYTHONPYCACHEPREFIX=/tmp/pycache/ -e SWEEPCTL_TOOLS -e HOME=/root -e PATH="$PATH" \
    --entrypoint=/bin/bash "$IMAGE" -c "bash benchmarks/single_node/${SCENARIO_SUBDIR}${EXP_NAME%%_*}_${PRECISION}_box.sh; sleep 600" \
    >/dev/null
podman logs --follow bmk-server &
until podman logs bmk-server 2>&1 | grep -q '^the script is over$'; do sleep 0.2; done
kill $!
