package weir

import (
	"log/slog"
	"time"
)

// An Entry is one that a program without slog sends by [Client.Log].
type Entry struct {
	Time        time.Time // default now
	Level       slog.Level
	Message     string
	Environment string // default Options.Environment
	ProjectID   string // default Options.ProjectID
	Metadata    map[string]any
	Error       error // becomes the entry's error, which errors are grouped by
}

// appendHead begins the text of an entry; its object is not closed.
func appendHead(buf []byte, at time.Time, level int, message string) []byte {
	buf = append(buf, `{"timestamp":"`...)
	buf = at.UTC().AppendFormat(buf, time.RFC3339Nano)
	buf = append(append(append(buf, `","level":"`...), levelNames[level]...), `","message":`...)
	return appendString(buf, message)
}

// tailOf returns the members that entries have by default.
func tailOf(environment, project string) string {
	var tail []byte
	if environment != "" {
		tail = appendString(append(tail, `,"environment":`...), environment)
	}
	if project != "" {
		tail = appendString(append(tail, `,"project_id":`...), project)
	}
	return string(tail)
}
