package entryfield

// Fields of an entry.
const (
	Timestamp   = "timestamp"
	Level       = "level"
	Message     = "message"
	Environment = "environment"
	Metadata    = "metadata"
	Error       = "error"
	ProjectID   = "project_id"
)

// Fields of an entry's error.
const (
	ErrorType       = "type"
	ErrorMessage    = "message"
	ErrorStackTrace = "stack_trace"
	ErrorContext    = "context"
)
