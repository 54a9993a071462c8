# ---- Small helpers -------------------------------------------------------------------------------------------------

# check_env_vars NAME...: ends the shell unless every variable has a value.
check_env_vars() {
    local name
    local -a missing=()
    for name in "$@"; do
        [[ -n "${!name:-}" ]] || missing+=("$name")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    echo "Error: these required environment variables are not set:"
    printf '  - %s\n' "${missing[@]}"
    exit 1
}

# write_command FILE WORD...: keeps a command so that a shell can run it again, and shows it.
write_command() {
    { printf '%q ' "${@:2}" && printf '\n'; } | tee "$1"
}

# append_command FILE WORD...: the same at the end of a file, without showing it.
append_command() {
    { printf '%q ' "${@:2}" && printf '\n'; } >>"$1"
}

_is_true() {
    case "${1,,}" in
    1 | true | yes | on) return 0 ;;
    *) return 1 ;;
    esac
}

# stop_background_process_tree PID [LABEL] [SECONDS]: TERM to the process, then KILL to it and all that it had started.
stop_background_process_tree() {
    _sweepctl library stop-tree "${1:-}" "${2:-background process}" "${3:-30}" || true
    [[ "${1:-}" =~ ^[1-9][0-9]*$ ]] && wait "$1" 2>/dev/null
    return 0
}

# wait_for_amd_gpu_clean: waits until earlier jobs' memory is free; 1 after 15 minutes.
wait_for_amd_gpu_clean() {
    _sweepctl library wait-amd-clean || return 1
}

