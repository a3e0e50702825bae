package console

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/ui"
)

// Bounds of a shown sample.
const (
	maxFrames     = 100 // per exception
	maxExceptions = 10
)

// shownOccurrence is a sample as a page shows it.
type shownOccurrence struct {
	Entry       string
	At          time.Time
	Levels      []ui.Level
	Environment string
	Logs        string // the address of the logs around it
	Exceptions  []shownException
	More        int64 // exceptions that are not shown
}

// shownException is one error of a chain.
type shownException struct {
	Type    string
	Message string
	Frames  []shownFrame
	More    int64 // frames that are not shown
}

// shownFrame is one call.
type shownFrame struct {
	What  string // what was called
	Where string // file, line and column, as far as known
	InApp bool
}

func showOccurrences(project string, occurrences []postgres.Occurrence) (shown []shownOccurrence) {
	for _, o := range occurrences {
		s := shownOccurrence{Entry: o.Entry, At: o.At, Levels: ui.Levels(o.Severity.Names()), Environment: o.Environment, Logs: logsAround(project, o)}
		for _, x := range o.Exceptions[:min(len(o.Exceptions), maxExceptions)] {
			s.Exceptions = append(s.Exceptions, showException(x))
		}
		s.More = int64(len(o.Exceptions) - len(s.Exceptions))
		for _, x := range o.Exceptions {
			s.More += int64(x.MoreExceptions)
		}
		shown = append(shown, s)
	}
	return shown
}

// margin is how long before and after a sample its logs begin and end.
const margin = 30 * time.Second

// logsAround is the address of what the same project and
// environment logged just before and after.
func logsAround(project string, o postgres.Occurrence) string {
	query := url.Values{}
	for name, value := range map[string]string{
		"project": project, "environment": o.Environment, "from": queryTime(o.At.Add(-margin)), "to": queryTime(o.At.Add(margin)),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "/console/logs?" + query.Encode()
}

// queryTime is at in RFC 3339, or "" where that has no year for it.
func queryTime(at time.Time) string {
	if year := at.UTC().Year(); year < 0 || year > 9999 {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func showException(x postgres.Exception) shownException {
	shown := shownException{Type: x.Type, Message: x.Message}
	for _, f := range x.Frames[:min(len(x.Frames), maxFrames)] {
		shown.Frames = append(shown.Frames, shownFrame{What: called(f), Where: where(f), InApp: f.InApp})
	}
	shown.More = int64(len(x.Frames) - len(shown.Frames) + x.MoreFrames)
	return shown
}

func called(f postgres.Frame) string {
	if f.Module != "" && f.Function != "" {
		return f.Module + "." + f.Function
	}
	return cmp.Or(f.Function, f.Module, "(unknown)")
}

func where(f postgres.Frame) string {
	place := f.File
	for _, number := range []int{f.Line, f.Column} {
		if number == 0 {
			break
		}
		place += ":" + strconv.Itoa(number)
	}
	return place
}
