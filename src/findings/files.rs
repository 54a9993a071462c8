//! Files that cannot be read, and texts that are no YAML.

super::findings! {
    MISSING = Error "file/missing"
        "A file that does not exist"
        "A command was given a path, or looks for a file by its name, and there is none."
        "Check the path, or run from the repository's root.";
    UNREADABLE = Error "file/unreadable"
        "A file that cannot be read"
        "The system refused to open or read it; the message says why."
        "Check its permissions and the disk.";
    NOT_REGULAR = Error "file/not-regular"
        "Not a regular file"
        "A named pipe, link or folder stands where a file is read: its reader could wait forever, or be led elsewhere."
        "Replace it by a file.";
    TOO_LARGE = Error "file/too-large"
        "A file over the limit"
        "Files are read whole, so their size is bounded."
        "Split it: several master files are merged.";
    NOT_TEXT = Error "file/not-text"
        "Bytes that are no plain text"
        "Configuration is UTF-8, with tabs and line ends as its only control characters."
        "Save it as UTF-8 and remove the character.";
    UNKNOWN_KIND = Error "file/unknown-kind"
        "A file whose name says nothing of its content"
        "`check` knows what to check a file for by its name."
        "Give it one of the known names, or do not ask for it.";
    NOTHING_TO_CHECK = Error "file/nothing-to-check"
        "A folder without anything to check"
        "A check that looked at nothing would pass whatever is wrong."
        "Run from the repository's root, or name the folder that holds the files.";
    TOO_MANY = Error "file/too-many-findings"
        "A file with more findings than are shown"
        "Beyond a hundred findings of one file the rest is left out."
        "Correct those that are shown, and check again.";
    SYNTAX = Error "yaml/syntax"
        "A text that is not YAML"
        "The parser cannot go on behind this place, so only the first such error of a file is said."
        "Check the indentation, and that each bracket and quote is closed.";
    CONFLICT = Error "yaml/conflict"
        "A merge conflict that is not settled"
        "Lines of `<<<<<<<` and `>>>>>>>` stand around the two sides that a merge could not put together."
        "Keep what holds of both sides, and remove the lines of markers; of the changelog `sweepctl changelog resolve` does so.";
    DUPLICATE_KEY = Error "yaml/duplicate-key"
        "A key that stands twice"
        "YAML parsers disagree about which of the two counts."
        "Remove one.";
    KEY = Error "yaml/key"
        "A key that is no plain name"
        "Lists and mappings cannot name a field."
        "Write a plain name.";
    MERGE = Error "yaml/merge"
        "A merge of something that is no mapping"
        "`<<` brings the fields of other mappings."
        "Write the fields out.";
    TAG = Error "yaml/tag"
        "A tag that is not accepted"
        "Tags change what a value is; only the core ones are known."
        "Remove it.";
    DOCUMENTS = Error "yaml/documents"
        "A second document"
        "One file holds one document; what stands in the others would be passed over."
        "Remove the `---`.";
    ALIAS = Error "yaml/alias"
        "An alias that contains itself, or aliases that repeat too much"
        "Aliases multiply what a reader has to hold, so what they bring is bounded."
        "Write the values out.";
    TOO_DEEP = Error "yaml/too-deep"
        "Nesting that is too deep"
        "No real file nests this deep, and a reader's stack is finite."
        "Check the brackets and the indentation.";
    TOO_MANY_VALUES = Error "yaml/too-many-values"
        "More values than a file may hold"
        "What a file costs to read is bounded."
        "Split it: several master files are merged.";
}
