package http

import (
	"time"

	"github.com/weirlog/weir/grouping/internal/postgres"
)

type occurrenceBody struct {
	EntryID     string          `json:"entry_id" description:"Id of the log entry, as GET /v1/logs shows it; the entry there is whole"`
	Time        time.Time       `json:"time"`
	Level       string          `json:"level" enum:"debug,info,warn,error,fatal"`
	Environment string          `json:"environment"`
	Message     string          `json:"message" description:"Message of the log entry; its first 1,000 bytes, ending in … where it is longer"`
	Exceptions  []exceptionBody `json:"exceptions" maxItems:"10" description:"The chain of errors, the root cause first; at most 10"`
	Frames      []frameBody     `json:"frames" description:"The calls as parsed: of the root cause first, the innermost call first; at most 50 of each error and 12 KB of names in all, each name of at most 300 bytes"`

	MoreExceptions int `json:"more_exceptions,omitempty" minimum:"1" description:"How many errors of the chain are not shown; absent where all are"`
}

// exceptionBody is one error of the chain. The root cause is 0.
type exceptionBody struct {
	Type    string `json:"type" description:"Its first 300 bytes, ending in … where it is longer"`
	Message string `json:"message" description:"Its first 1,000 bytes, ending in … where it is longer"`

	MoreFrames int `json:"more_frames,omitempty" minimum:"1" description:"How many frames of the error are not shown; absent where all are"`
}

type frameBody struct {
	Exception int    `json:"exception" description:"Index in exceptions"`
	Module    string `json:"module"`
	Function  string `json:"function"`
	File      string `json:"file"`
	Line      int    `json:"line" description:"From 1; 0 is unknown"`
	Column    int    `json:"column" description:"From 1; 0 is unknown"`
	InApp     bool   `json:"in_app" description:"The sender's own code rather than a library's"`
}

func newOccurrenceBodies(occurrences []postgres.Occurrence) []occurrenceBody {
	bodies := make([]occurrenceBody, len(occurrences))
	for i, o := range occurrences {
		bodies[i] = occurrenceBody{
			EntryID: o.Entry, Time: o.At.UTC(), Environment: o.Environment, Message: o.Message,
			Exceptions: []exceptionBody{}, Frames: []frameBody{},
		}
		if words := o.Severity.Names(); len(words) > 0 {
			bodies[i].Level = words[0]
		}
		for number, x := range o.Exceptions {
			bodies[i].Exceptions = append(bodies[i].Exceptions, exceptionBody{x.Type, x.Message, x.MoreFrames})
			bodies[i].MoreExceptions += x.MoreExceptions
			for _, f := range x.Frames {
				bodies[i].Frames = append(bodies[i].Frames, frameBody{number, f.Module, f.Function, f.File, f.Line, f.Column, f.InApp})
			}
		}
	}
	return bodies
}
