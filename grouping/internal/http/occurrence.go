package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func occurrenceOperations(a *access, of *groups.Occurrences) []openapi.Operation {
	return []openapi.Operation{{
		Route: "POST /v1/error-groups/{group}/select", Handle: a.repeats(selecting(of)), ID: "selectErrorGroupEntries",
		Summary: "Which of some log entries are errors of an error group",
		Description: "They are told apart by what held when each was accepted: rules, splits, source maps, and what was learned of the project; " +
			"what was merged counts as it does now. Nothing is stored. All occurrences of a group are at GET /v1/error-groups/{group}/occurrences.",
		Headers: repeatable{}, Query: struct{}{},
		Body:     openapi.Body{Type: query.EntriesBody{}},
		Answer:   openapi.Answer{Type: query.SelectedBody{}, Description: "The entries of the group"},
		Problems: map[int]string{http.StatusNotFound: "There is no such group in the key's organization"},
	}}
}

func selecting(of *groups.Occurrences) handler {
	return func(c *call) (any, error) {
		release, err := of.Acquire(c.ctx(), c.who.Organization)
		if err != nil {
			return nil, err
		}
		defer release()
		var body query.EntriesBody
		entries, err := query.ReadEntries(c.w, c.r, &body, &body)
		if err != nil {
			return nil, err
		}
		selected, err := of.Select(c.ctx(), c.who, c.param("group"), entries)
		return query.Selected(selected), err
	}
}

// entrySearchBody finds the log entries of a group.
type entrySearchBody struct {
	Project string     `json:"project" maxLength:"64"`
	Query   string     `json:"q"`
	From    time.Time  `json:"from"`
	To      *time.Time `json:"to" description:"null: there is no bound, as an entry names the end of the year 9999"`
}

func newEntrySearchBody(s groups.EntrySearch) entrySearchBody {
	return entrySearchBody{s.Project, s.Query, s.From.UTC(), httpapi.TimeOrNull(s.To)}
}

type occurrenceBody struct {
	EntryID     string          `json:"entry_id" description:"Id of the log entry, as GET /v1/logs shows it; the entry there is whole"`
	Time        time.Time       `json:"time"`
	Level       string          `json:"level" enum:"debug,info,warn,error,fatal"`
	Environment string          `json:"environment"`
	Hash        *string         `json:"hash" description:"By which errors like it are split off; null: nothing tells it from the other samples of its group"`
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

	Printed *printedBody `json:"printed,omitempty" description:"The call of the built script as it was printed, where a source map says where it was written; else absent"`

	Unmapped trace.Unmapped `json:"unmapped,omitempty" enum:"no_build,no_map,no_column,no_position" description:"Why no source map was applied, in a project that has some: the error names neither a release nor a debug id, there was no map of the script, the call has no column, or the map has nothing there; absent otherwise"`

	Library trace.Reason `json:"library,omitempty" enum:"path,known,learned,rule" description:"Why it is a library's: its file lies where libraries are installed, its name is that of a known library or of the runtime, few errors of the project go through its package, or a rule says so, or that the call does not count; absent for own code"`

	Rule string `json:"rule,omitempty" description:"The rule of the project that says whether it is own code, as it was then; absent where none does"`
}

// printedBody is a call of a built script as it was printed.
type printedBody struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
}

func newFrameBody(exception int, f postgres.Frame) frameBody {
	body := frameBody{
		Exception: exception, Module: f.Module, Function: f.Function, File: f.File, Line: f.Line, Column: f.Column, InApp: f.InApp, Library: f.Library, Rule: f.Rule,
	}
	if p := f.Printed; p != nil {
		if body.Unmapped = p.Unmapped; p.Unmapped == "" {
			body.Printed = &printedBody{p.Function, p.File, p.Line, p.Column}
		}
	}
	return body
}

func newOccurrenceBody(o postgres.Occurrence) occurrenceBody {
	body := occurrenceBody{
		EntryID: o.Entry, Time: o.At.UTC(), Environment: o.Environment, Hash: httpapi.OrNull(o.SplitHash), Message: o.Message,
		Exceptions: []exceptionBody{}, Frames: []frameBody{},
	}
	if words := o.Severity.Names(); len(words) > 0 {
		body.Level = words[0]
	}
	for number, x := range o.Exceptions {
		body.Exceptions = append(body.Exceptions, exceptionBody{x.Type, x.Message, x.MoreFrames})
		body.MoreExceptions += x.MoreExceptions
		for _, f := range x.Frames {
			body.Frames = append(body.Frames, newFrameBody(number, f))
		}
	}
	return body
}
