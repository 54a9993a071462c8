# A job at full size: it notes its envelope, which nothing else may have, and leaves a result of each of its concurrencies.
set -euo pipefail
envelope=
for input in "${!WITH_@}"; do
    [[ ${!input} != envelope=* ]] || envelope=${!input#envelope=}
done
field() {
    [[ $envelope =~ \"$1\":[[:space:]]*\"?([^\",}]*) ]] && value=${BASH_REMATCH[1]} || value=
}
kind=bmk
field scenario-type
[ "$value" != agentic-coding ] || kind=bmk_agentic
field exp-name
name=$value
field id
set -o noclobber
printf '%s' "$envelope" >"$ACT_ENVELOPES/$value"
artifact=$ACT_ARTIFACTS/${kind}_${name}_$value
mkdir "$artifact"
[[ $envelope =~ \"conc\":[[:space:]]*\[?([0-9,[:space:]]+) ]]
IFS=$', \n' read -rd '' -a concs <<<"${BASH_REMATCH[1]}" || true
for conc in "${concs[@]}"; do
    printf '{"conc": %s, "tput_per_gpu": 1.5}' "$conc" >"$artifact/agg_conc$conc.json"
done
