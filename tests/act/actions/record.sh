# A job at full size: it notes its envelope, which nothing else may have, and leaves a result under its artifact's name.
set -euo pipefail
envelope=${WITH_0#envelope=}
field() {
    [[ $envelope =~ \"$1\":\ *\"?([^\",}]*) ]] && value=${BASH_REMATCH[1]} || value=
}
kind=bmk
field scenario-type
[ "$value" != agentic-coding ] || kind=bmk_agentic
field exp-name
name=$value
field id
set -o noclobber
printf '%s' "$envelope" >"$ACT_ENVELOPES/$value"
mkdir "$ACT_ARTIFACTS/${kind}_${name}_$value"
printf '{}' >"$ACT_ARTIFACTS/${kind}_${name}_$value/result.json"
