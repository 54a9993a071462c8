"""The rules of actions/upload-artifact and actions/download-artifact (v4 and later), with a folder as the store."""

import fnmatch
import glob
import os
import shutil
import sys

ILLEGAL = {'"': "double quote", ":": "colon", "<": "less than", ">": "greater than", "|": "vertical bar",
           "*": "asterisk", "?": "question mark", "\r": "carriage return", "\n": "line feed"}
ILLEGAL_NAME = {**ILLEGAL, "\\": "backslash", "/": "forward slash"}
LISTED = 1000


def fail(message):
    print(f"::error::{message}")
    sys.exit(1)


def given(name):
    return os.environ.get(f"INPUT_{name}", "")


def checked_name(name):
    if not 1 <= len(name) <= 256:
        fail(f"The artifact name is not valid: it has {len(name)} characters, 1 to 256 are allowed")
    for character, word in ILLEGAL_NAME.items():
        if character in name:
            fail(f"The artifact name is not valid: {name!r}. Contains the following character: {word}")
    return name


def is_glob(part):
    return any(character in part for character in "*?[")


def search_path(pattern):
    """The part of a pattern before its first glob."""
    parts = pattern.split(os.sep)
    plain = next((at for at, part in enumerate(parts) if is_glob(part)), len(parts))
    return os.sep.join(parts[:plain]) or os.sep


def is_hidden(path, root):
    """Whether a part of the path below the root starts with a dot; of the root itself its last part counts."""
    below = os.path.basename(path) if path == root else os.path.relpath(path, root)
    return any(part.startswith(".") for part in below.split(os.sep))


def found(pattern, hidden):
    """The files that a pattern names, those below its folders included."""
    files, root = set(), search_path(pattern)
    for path in glob.glob(pattern, recursive=True, include_hidden=hidden):
        if os.path.isdir(path):
            for folder, _, names in os.walk(path):
                files.update(os.path.join(folder, name) for name in names)
        else:
            files.add(path)
    return {file for file in files if hidden or not is_hidden(file, root)}


def gathered():
    """The files of `path`, and the folder that their names start from: their patterns' least common ancestor."""
    hidden = given("INCLUDE_HIDDEN_FILES") == "true"
    files, roots = set(), set()
    for line in filter(None, map(str.strip, given("PATH").splitlines())):
        out = line.startswith("!")
        pattern = os.path.abspath(line.lstrip("!"))
        if out:
            files -= found(pattern, True)
        else:
            files |= found(pattern, hidden)
            roots.add(search_path(pattern))
    if not roots:
        fail("Input required and not supplied: path")
    root = os.path.commonpath(roots)
    return sorted(files), os.path.dirname(root) if files == {root} else root


def put(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)


def upload():
    name, mode = checked_name(given("NAME")), given("IF_NO_FILES_FOUND")
    if mode not in ("warn", "error", "ignore"):
        fail(f"Unrecognized if-no-files-found input: {mode}")
    files, root = gathered()
    if not files:
        message = f"No files were found with the provided path: {given('PATH')}. No artifacts will be uploaded."
        if mode == "error":
            fail(message)
        print(f"::warning::{message}" if mode == "warn" else message)
        return
    names = [os.path.relpath(file, root) for file in files]
    for character, word in ILLEGAL.items():
        bad = [name for name in names if character in name]
        if bad:
            fail(f"The path for one of the files in artifact is not valid: {bad[0]!r}. Contains: {word}")
    folder = os.path.join(os.environ["ACT_ARTIFACTS"], name)
    try:
        os.makedirs(folder)
    except FileExistsError:
        fail(f"(409) Conflict: an artifact with this name already exists on the workflow run: {name}")
    for file, inside in zip(files, names):
        put(file, os.path.join(folder, inside))
    print(f"{name}: {len(files)} files")


def store():
    """The artifacts of the run that is asked; those of another run lie beside those of this one."""
    run, own = given("RUN_ID"), os.environ["ACT_ARTIFACTS"]
    return own if run in ("", os.environ.get("GITHUB_RUN_ID")) else f"{own}-{run}"


def listed():
    """The run's artifacts, as many as the action sees."""
    entries = sorted(os.scandir(store()), key=lambda entry: (entry.stat().st_ctime_ns, entry.name))
    names = [entry.name for entry in entries]
    if len(names) > LISTED:
        print(f"::warning::Total artifact count exceeds {LISTED}, only {LISTED} are listed")
    return names[:LISTED]


def unpack(name, folder):
    artifact = os.path.join(store(), name)
    os.makedirs(folder, exist_ok=True)
    for at, _, files in os.walk(artifact):
        for file in files:
            source = os.path.join(at, file)
            put(source, os.path.join(folder, os.path.relpath(source, artifact)))


def download():
    name, path = given("NAME"), given("PATH") or "."
    if name:
        if not os.path.isdir(os.path.join(store(), checked_name(name))):
            fail(f"Unable to download artifact(s): Artifact not found for name: {name}")
        unpack(name, path)
        return
    pattern = given("PATTERN")
    names = [name for name in listed() if not pattern or fnmatch.fnmatchcase(name, pattern)]
    for name in names:
        flat = given("MERGE_MULTIPLE") == "true" or len(names) == 1
        unpack(name, path if flat else os.path.join(path, name))
    print(f"Total of {len(names)} artifact(s) downloaded")


{"upload": upload, "download": download}[sys.argv[1]]()
