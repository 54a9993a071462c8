# ---- GPU monitor ---------------------------------------------------------------------------------------------------

# start_gpu_monitor [--output FILE] [--interval SECONDS]
start_gpu_monitor() {
    local output="$GPU_METRICS_CSV" interval=1
    while [[ $# -gt 0 ]]; do
        case "$1" in
        --output) output="${2:-$output}" && shift ;;
        --interval) interval="${2:-$interval}" && shift ;;
        esac
        [[ $# -eq 0 ]] || shift
    done
    export GPU_METRICS_CSV="$output"
    GPU_MONITOR_INTERVAL="$interval"
    GPU_MONITOR_VENDOR=""
    if command -v nvidia-smi >/dev/null 2>&1; then
        GPU_MONITOR_VENDOR=nvidia
    elif command -v amd-smi >/dev/null 2>&1; then
        GPU_MONITOR_VENDOR=amd
    else
        echo "[GPU Monitor] neither nvidia-smi nor amd-smi is here: nothing is monitored"
        return 0
    fi
    _sweepctl_exec library gpu-monitor --vendor "$GPU_MONITOR_VENDOR" --output "$output" --interval "$interval" \
        >/dev/null 2>&1 &
    GPU_MONITOR_PID=$!
    [[ "$GPU_MONITOR_VENDOR" != amd ]] || _sweepctl library gpu-snapshot --output "$output" --at start || true
    echo "[GPU Monitor] started $GPU_MONITOR_VENDOR (PID=$GPU_MONITOR_PID, interval=${interval}s, output=$output)"
}

# stop_gpu_monitor: ends it with a whole last line, and a sample after the benchmark's end.
stop_gpu_monitor() {
    if [[ -n "$GPU_MONITOR_PID" ]] && kill -0 "$GPU_MONITOR_PID" 2>/dev/null; then
        _sweepctl library gpu-finish --vendor "$GPU_MONITOR_VENDOR" --output "$GPU_METRICS_CSV" \
            --interval "$GPU_MONITOR_INTERVAL" --pid "$GPU_MONITOR_PID" || true
        wait "$GPU_MONITOR_PID" 2>/dev/null || true
        echo "[GPU Monitor] stopped (PID=$GPU_MONITOR_PID)"
    fi
    GPU_MONITOR_PID=""
    GPU_MONITOR_VENDOR=""
}

