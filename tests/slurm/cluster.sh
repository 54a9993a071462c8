# A Slurm cluster of one node on loopback, with files in the folder given. It lives as long as standard input is open.
set -eu
folder=$1
cd "$folder"
export SLURM_CONF=$folder/slurm.conf
PATH=$PATH:/usr/sbin:/sbin
started=()
start() {
    local name=$1
    shift
    "$@" >"$name.out" 2>&1 </dev/null &
    started+=($!)
}
finish() {
    # Jobs are no children of this shell: they end while there is a Slurm to end them.
    timeout 5 scancel --me --full --signal=KILL || true
    timeout 5 scancel --me || true
    for _ in $(seq 50); do
        [ -n "$(timeout 5 squeue -h)" ] || break
        sleep 0.1
    done
    for ((at = ${#started[@]} - 1; at >= 0; at--)); do
        kill "${started[at]}" || true
        for _ in $(seq 20); do
            kill -0 "${started[at]}" || break
            sleep 0.1
        done
        kill -KILL "${started[at]}" || true
    done
    rm -rf "$folder"
} 2>/dev/null
trap finish EXIT
mkdir -m 700 munge state spool
head -c 1024 /dev/urandom >munge/key
chmod 400 munge/key
start munged munged --force -F --key-file=munge/key --socket="$folder/munge/socket" --pid-file=munge/pid \
    --log-file=munge/log --seed-file=munge/seed
until [ -S munge/socket ]; do sleep 0.02; done
start slurmctld slurmctld -D
start slurmd slurmd -D -N n1
until sinfo -h -n n1 -o %T 2>/dev/null | grep -qx idle; do sleep 0.05; done
echo ready
cat >/dev/null
