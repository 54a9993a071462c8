//! The gate of the changelog, and its repairs.

super::findings! {
    FORBIDDEN_BYTES = Error "changelog/forbidden-characters"
        "A character that new text may not hold"
        "Tabs, carriage returns, byte order marks and other control characters make entries that cannot be told apart by eye."
        "Remove it: new text is UTF-8, indented by spaces, and its lines end in a line feed.";
    INSERTED = Error "changelog/inserted-text"
        "Text before the end of what exists"
        "The changelog is a log: what is new stands at its end, and open branches merge."
        "Move it to the end of the file, after one empty line.";
    REMOVED = Error "changelog/removed-text"
        "Existing text that is removed"
        "Existing entries say what was measured and why."
        "Restore the file, and append what is new again.";
    ALTERED = Error "changelog/altered-text"
        "Existing text that is altered"
        "Existing entries say what was measured and why; only a link may be set right."
        "Restore the file, and append what is new again.";
    LINE_ENDS = Error "changelog/altered-line-ends"
        "Existing lines that end in another way"
        "An editor or git turned line ends around, which alters every line of the file."
        "Keep line ends as they are; see `git config core.autocrlf` and the editor's settings.";
    ALTERED_ENTRY = Error "changelog/altered-entry"
        "An entry of the base that is missing or altered at the head"
        "A plan is made of what was added; an altered entry has no plan."
        "Restore the entry, and append a new one.";
    ALTERED_LINK = Error "changelog/altered-link"
        "A link that is altered to something else"
        "The one thing of an existing entry that may change is its `pr-link`, to a pull request's link."
        "Write a pull request's link, or restore the line.";
    NOT_A_LIST = Error "changelog/not-a-list"
        "A changelog that is no list"
        "A changelog is a list of entries."
        "Start each entry with `- config-keys:`.";
    CONTINUED = Error "changelog/continued-entry"
        "Added text that goes on with the last entry"
        "It alters an entry that exists."
        "Begin each new entry with `- config-keys:`, after one empty line.";
    NO_ENTRY = Error "changelog/no-entry"
        "A change that adds no entry"
        "There is nothing to plan."
        "Append an entry that says what to measure.";
    SEPARATION = Error "changelog/separation"
        "Entries without exactly one empty line between them"
        "One form keeps differences and merges small."
        "Put one empty line between them.";
    LAST_LINE = Error "changelog/last-line"
        "A file that does not end in one line end"
        "What the next change appends would alter the last line, or stand behind a gap."
        "End the file with one line end.";
    OPEN_LINK = Error "changelog/open-link"
        "A link that is still open"
        "Each entry leads to the pull request that added it."
        "Run `sweepctl changelog canonicalize`.";
    WRONG_LINK = Error "changelog/wrong-link"
        "A link to another pull request"
        "Each entry leads to the pull request that added it."
        "Write the link of the entry's own pull request.";
    LINKS_AND_ENTRIES = Error "changelog/links-and-entries"
        "A change that corrects old links and adds entries"
        "A plan refuses altered entries, so the two do not pass together."
        "Correct links in a change of its own.";
}
