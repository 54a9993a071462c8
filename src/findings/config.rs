//! Values of configuration files.

super::findings! {
    UNKNOWN_EVALUATOR = Error "config/unknown-evaluator"
        "An evaluator that nothing here runs"
        "A job that is given one fails once its server has started: no GPU is asked for that."
        "Correct the name, or describe the evaluator in `configs/evals/frameworks.yaml`.";
    EVAL_PLACEHOLDER = Error "config/unknown-placeholder"
        "A placeholder that an eval framework does not know"
        "The program would be given the braces as they stand."
        "Use one of the known placeholders, which the message lists.";
    UNKNOWN_SUITE = Error "config/unknown-suite"
        "A suite or task that its evaluator does not have"
        "A job that is given one fails once its server has started: no GPU is asked for that."
        "Correct the name, or add the suite to `configs/evals/frameworks.yaml`, or a task file beside it.";
    UNKNOWN_FIELD = Error "config/unknown-field"
        "A field that is not known here"
        "It would have no effect: most often a name is misspelt or stands on the wrong level."
        "Correct the name; `sweepctl schema KIND` lists the fields.";
    MISSING_FIELD = Error "config/missing-field"
        "A field that must be there is missing"
        "Without it the entry has no meaning."
        "Add it.";
    MISPLACED_FIELD = Error "config/misplaced-field"
        "A field that has no meaning here"
        "The field is known, and what stands beside it rules it out."
        "Remove it, or correct what rules it out.";
    WRONG_TYPE = Error "config/wrong-type"
        "A value of the wrong type"
        "A string, a number, a boolean, a list or a mapping is expected; a quoted number is a string."
        "Write the expected type; the message names it.";
    EMPTY = Error "config/empty"
        "A value that holds nothing"
        "An empty value would read as if it were meant."
        "Give it a value, or remove the field.";
    OUT_OF_RANGE = Error "config/out-of-range"
        "A number outside of its bounds"
        "Sizes, counts and shares have bounds that every later step relies on."
        "Correct the number.";
    UNKNOWN_VALUE = Error "config/unknown-value"
        "A value that is not one of the known ones"
        "The field takes one of a closed list of words."
        "Write one of them.";
    UNKNOWN_NAME = Error "config/unknown-name"
        "A name that nothing bears"
        "It refers to an entry of this file, or of another one, that is not there."
        "Correct the name, or add the entry.";
    MALFORMED = Error "config/malformed"
        "A value that is not of its form"
        "Names, versions, commits and settings have a form, so that they are safe wherever they are used."
        "Write it as the hint says.";
    CONFLICT = Error "config/conflict"
        "Values that contradict each other"
        "Each may stand alone, and both together have no meaning."
        "Keep one, or correct one of the two.";
    INCOMPLETE = Error "config/incomplete"
        "A value whose other half is missing"
        "It says something only together with another field."
        "Add the other, or remove this one.";
    NAMED_TWICE = Error "config/named-twice"
        "A name that has two owners"
        "One name has to lead to one entry."
        "Name it once.";
    VERSION = Error "config/version"
        "A version of the format that is not known"
        "Reading a later format by the rules of this one would misread it."
        "Write the version that is known, or update sweepctl.";
    NOTHING = Error "config/nothing"
        "A file that holds nothing that can be read"
        "What is expected at its top is missing."
        "Write what `sweepctl schema KIND` describes.";
    RULE = Error "config/rule"
        "A rule of this kind of file is broken"
        "The message names the rule."
        "Correct what the message names.";
    UNKNOWN_RUNNER = Error "config/unknown-runner"
        "A runner label without hardware"
        "The rows of a config need to know what its label runs on."
        "Add the label to configs/runners.yaml, or correct it.";
    NO_SUCH_RUNNER = Error "config/no-such-runner"
        "A runner that no label and no runner name is"
        "Its jobs would wait for a runner that never comes."
        "Correct it, or add the label to configs/runners.yaml.";
    NO_CLUSTER = Error "config/no-cluster"
        "A runner whose jobs nothing starts"
        "Its jobs would fail after they have taken a runner."
        "Add a cluster to configs/clusters.yaml.";
    NO_COMMAND = Error "config/no-command"
        "A row that neither a launch script nor an engine runs"
        "Its job would fail after it has taken a runner."
        "Write the launch script, or add what is missing to configs/engines.yaml.";
    SIZE = Error "config/size"
        "Sizes that do not fit the hardware or each other"
        "A row with such sizes could not be placed on a node."
        "Correct the sizes, or the hardware in configs/runners.yaml.";
    BEYOND_NODE = Warning "config/beyond-node"
        "A server on one node that needs more GPUs than its nodes have"
        "Its job would take a runner and fail when the engine starts."
        "Correct the sizes, or `gpus-per-node` in configs/runners.yaml.";
    MEASURED_TWICE = Warning "config/measured-twice"
        "A point that is measured twice"
        "Two jobs take a runner each for one measurement."
        "Name it once.";
    UNUSED_THRESHOLD = Error "config/unused-threshold"
        "A threshold that reaches no model or task"
        "A threshold that reaches nothing protects nothing."
        "Correct the key.";
    NO_THRESHOLD = Warning "config/no-threshold"
        "An eval task without a threshold"
        "The gate judges it by the floor that stands for every task without one, which knows nothing of the task."
        "Add the task to the thresholds file.";
    FLOOR_BEYOND_MEAN = Error "config/floor-beyond-mean"
        "A bound on the wrong side of its own mean"
        "A run that is as good as the mean would fail."
        "Calibrate anew, or move the bound.";
    FLOOR_IN_NOISE = Warning "config/floor-in-noise"
        "A bound closer to its mean than two spreads"
        "Good runs fail often by chance alone."
        "Move the bound, or calibrate it at a rate.";
    OTHER_FORM = Error "config/other-form"
        "A value in a form that is not edited"
        "Files are edited by lines, so that comments stay; what stands in another form is not rewritten."
        "Write the value by hand, as the hint says.";
}
