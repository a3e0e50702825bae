package grouping

// Error is a log entry's error payload. Fields may be empty.
type Error struct {
	Type       string   // class of the error, as sent
	Message    string   // message of the error, as sent; may span several lines
	StackTrace []string // lines or pieces of a stack trace; a piece may itself hold many lines

	Libraries Libraries // packages that are not the project's own; nil: none are known
}
