# The rules of actions/checkout, with a local repository in GitHub's place.
set -euo pipefail
origin=file://$ACT_ORIGIN
cd "$GITHUB_WORKSPACE"
mkdir -p "$INPUT_PATH"
cd "$INPUT_PATH"
# A clone of the same repository is used again; anything else in the folder is removed, whatever `clean` says.
if [ "$(git -C "$PWD" config --file .git/config remote.origin.url 2>/dev/null)" = "$origin" ]; then
    if [ "$INPUT_CLEAN" = true ]; then
        git clean -ffdxq
        git reset --quiet --hard HEAD
    fi
else
    find . -mindepth 1 -delete
    git init --quiet
    git remote add origin "$origin"
fi
ref=${INPUT_REF:-$GITHUB_SHA}
if [ "$INPUT_DEPTH" = 0 ]; then
    more=()
    [ ! -f .git/shallow ] || more=(--unshallow)
    git fetch --quiet --force "${more[@]}" origin '+refs/heads/*:refs/remotes/origin/*'
    commit=$(git rev-parse --verify --quiet "refs/remotes/origin/$ref" || git rev-parse --verify "$ref^{commit}")
else
    git fetch --quiet --force --no-tags --depth="$INPUT_DEPTH" origin "$ref"
    commit=$(git rev-parse FETCH_HEAD)
fi
git checkout --quiet --force --detach "$commit"
git config --local --unset-all http.https://github.com/.extraheader || true
if [ "$INPUT_PERSIST" = true ]; then
    git config --local http.https://github.com/.extraheader 'AUTHORIZATION: basic the-token-of-the-job'
fi
echo "commit=$commit" >>"$GITHUB_OUTPUT"
