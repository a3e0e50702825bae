package http

import (
	"time"

	"github.com/weirlog/weir/grouping/internal/postgres"
)

type occurrenceBody struct {
	EntryID     string          `json:"entry_id"`
	Time        time.Time       `json:"time"`
	Level       string          `json:"level"`
	Environment string          `json:"environment"`
	Message     string          `json:"message"` // of the entry, its beginning
	Exceptions  []exceptionBody `json:"exceptions"`
	Frames      []frameBody     `json:"frames"`

	MoreExceptions int `json:"more_exceptions,omitempty"` // of the chain, that are not kept
}

// exceptionBody is one error of the chain. The root cause is 0.
type exceptionBody struct {
	Type    string `json:"type"`
	Message string `json:"message"`

	MoreFrames int `json:"more_frames,omitempty"` // that are not kept
}

type frameBody struct {
	Exception int    `json:"exception"` // index of the frame's exception
	Module    string `json:"module"`
	Function  string `json:"function"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	InApp     bool   `json:"in_app"`
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
