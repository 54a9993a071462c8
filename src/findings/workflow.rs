//! What `workflow check` finds.

super::findings! {
    ALWAYS_ON_GPU = Error "workflow/always-on-gpu"
        "`always()` on a job that takes a GPU"
        "The job starts even after the run was cancelled, and takes a node for work that nobody waits for."
        "Write `!cancelled()` and what must hold of the jobs before it.";
    UNKNOWN_ARTIFACT = Error "workflow/unknown-artifact"
        "An artifact that no job before uploads"
        "The download fails when the job runs."
        "Upload it in a job that this one waits for, or correct the name.";
    REFUSED_KEY = Error "workflow/refused-key"
        "A key that a job with `uses` may not have"
        "GitHub refuses the file."
        "Move it to the jobs of the called workflow.";
    UNKNOWN_CALLEE = Error "workflow/unknown-callee"
        "A call of a workflow that is not there"
        "The run fails at its start."
        "Correct the name.";
    NOT_CALLABLE = Error "workflow/not-callable"
        "A call of a workflow without `workflow_call`"
        "The run fails at its start."
        "Add `workflow_call` to the callee's `on`.";
    UNKNOWN_INPUT = Error "workflow/unknown-input"
        "An input that the called workflow does not have"
        "The run fails at its start."
        "Correct the name, or declare the input.";
    MISSING_INPUT = Error "workflow/missing-input"
        "An input that is required and not passed"
        "The run fails at its start."
        "Pass it under `with`.";
    SHARED_CANCELLATION = Error "workflow/shared-cancellation"
        "A group that cancels, shared by every run"
        "Each run cancels the one before it, whatever started it: a sweep is lost to a comment."
        "Name what makes the group's runs replace each other, such as the pull request.";
    SKIPPED_BEHIND = Error "workflow/skipped-behind-optional"
        "A job that is skipped whenever an optional one is"
        "A job is skipped with what it needs unless its condition says otherwise."
        "Begin its condition with `!cancelled()` or `always()`, and ask for the results.";
    KEPT_CREDENTIALS = Error "workflow/kept-credentials"
        "A checkout that leaves its token behind"
        "Every later step, and whatever it runs, can read the token from the work tree."
        "Add `persist-credentials: false`.";
    TEMPLATE_INJECTION = Error "workflow/expression-in-script"
        "An expression inside a script"
        "Its value becomes part of the program: a branch's name can run commands."
        "Pass the value through `env`, and read the variable.";
    NOT_CLEANED_FIRST = Error "workflow/not-cleaned-first"
        "A launch on a node that was not cleaned before"
        "What an earlier job left is taken for this job's."
        "Run `sweepctl clean` before the checkout.";
    CONDITIONAL_UPLOAD = Error "workflow/upload-not-always"
        "An upload that a failed job skips"
        "The results and logs of a failure are those that are needed most."
        "Begin its `if` with `always() &&`.";
    GATE_BEFORE_UPLOAD = Error "workflow/gate-before-upload"
        "A gate in front of an upload"
        "What fails the gate cannot be looked at."
        "Gate after the last upload.";
    NOT_RELEASED = Error "workflow/not-released"
        "A node that is not released or cleaned after a launch"
        "Its engine and its files stay, and the next job fails or measures beside them."
        "End with `sweepctl launch --release` and `sweepctl clean`, both `if: always()`.";
    FILE_SIZE = Error "workflow/file-too-large"
        "A file over GitHub's limit"
        "GitHub does not read it."
        "Call a workflow of its own for a part of the jobs.";
    MATRIX_SIZE = Error "workflow/matrix-too-large"
        "A matrix over GitHub's limit"
        "GitHub starts at most 256 jobs of a matrix."
        "Cut it into shards.";
    LIMIT = Error "workflow/limit-out-of-range"
        "A limit outside of what GitHub takes"
        "GitHub refuses the value or cuts it."
        "Write a value within the range.";
    WORKFLOW_NAME = Error "workflow/duplicate-workflow-name"
        "Two workflows of one name"
        "Lists, badges and triggers go by the name."
        "Give each workflow a name of its own.";
    JOB_NAME = Error "workflow/duplicate-job-name"
        "Two jobs of one name"
        "Required checks go by the name: either of the two satisfies them."
        "Give each job a name of its own.";
    ARTIFACT_NAME = Error "workflow/artifact-name"
        "An artifact name that GitHub refuses"
        "The upload fails when the job has run."
        "Write 1 to 256 characters, none of \" : < > | * ? \\ /.";
    DUPLICATE_ARTIFACT = Error "workflow/duplicate-artifact"
        "An artifact that a run uploads twice"
        "The second upload is refused, and its results are lost."
        "Put the job's or the shard's own name into it.";
    UNKNOWN_NEED = Error "workflow/unknown-need"
        "A job that waits for one that is not there"
        "GitHub refuses the file."
        "Correct the name.";
    NEED_NOT_DECLARED = Error "workflow/need-not-declared"
        "An expression that names a job which is not waited for"
        "The value is empty when the job runs."
        "Add the job to `needs`.";
    NEEDS_CYCLE = Error "workflow/needs-cycle"
        "Jobs that wait for each other"
        "None of them can start, and GitHub refuses the file."
        "Remove one of the needs.";
    CALL_CYCLE = Error "workflow/call-cycle"
        "Calls that never end"
        "GitHub refuses the run."
        "Remove one of the calls.";
    NESTING = Error "workflow/too-many-levels"
        "More levels of calls than work everywhere"
        "Not every installation of GitHub goes deeper than four levels."
        "Call from a higher level.";
    DEFAULT_PERMISSIONS = Error "workflow/default-permissions"
        "A workflow that gives its jobs permissions by default"
        "Every job then has a token that can do more than it needs."
        "Write `permissions: {}`, and give each job its own.";
    NO_PERMISSIONS = Error "workflow/missing-permissions"
        "A job that does not say what its token may do"
        "What it may do depends on settings that are not in the file."
        "Add `permissions:`, `{}` for nothing.";
    TOO_FEW_PERMISSIONS = Error "workflow/too-few-permissions"
        "A caller with less than its callee asks for"
        "The run fails at its start."
        "Give the calling job what the called one asks for.";
    UNPINNED = Error "workflow/unpinned-action"
        "An action that is not pinned to a commit"
        "A tag or a branch can be moved to other code, which then runs with this repository's secrets."
        "Write the 40 hex digits of a commit after `@`.";
    UNNAMED_PIN = Error "workflow/pin-without-version"
        "A pin that does not say which version it is"
        "Nobody can see whether it is old."
        "Add the version as a comment: `# v1.2.3`.";
    UNDECLARED_SECRET = Error "workflow/undeclared-secret"
        "A secret that the workflow does not declare"
        "A called workflow has no other secrets than those that it declares, unless its callers pass all: the value is empty."
        "Declare it under `workflow_call`.";
    INHERITED_SECRETS = Error "workflow/inherited-secrets"
        "A call that passes every secret there is"
        "The called workflow needs a few, and gets all."
        "Name those that it declares.";
    UNKNOWN_SECRET = Error "workflow/unknown-secret"
        "A secret that the called workflow does not declare"
        "The run fails at its start."
        "Correct the name, or declare the secret.";
    SECRET_NOT_PASSED = Error "workflow/secret-not-passed"
        "A declared secret that is not passed"
        "It is empty in the called workflow."
        "Pass it under `secrets`.";
    NO_TIMEOUT = Error "workflow/missing-timeout"
        "A job without a time limit"
        "A job that hangs holds its runner for six hours, or for days on one's own."
        "Add `timeout-minutes`.";
    DANGEROUS_TRIGGER = Error "workflow/dangerous-trigger"
        "`pull_request_target`"
        "It gives a stranger's code this repository's secrets."
        "Trigger on `pull_request`, and do the rest in a run of the default branch.";
    VERDICT_SKIPPED = Error "workflow/verdict-skipped"
        "A verdict that can be skipped"
        "A skipped check counts as passed."
        "Write `if: always()`.";
    VERDICT_INCOMPLETE = Error "workflow/verdict-incomplete"
        "A verdict that does not judge every job"
        "What is not judged can fail without anyone being told."
        "Add the jobs to its `needs`.";
}
