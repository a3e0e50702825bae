package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/grouping/trace"
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
	LogsUpTo    string // the address of the logs before it, the newest first
	LogsFrom    string // of those after it, the oldest first
	Chosen      bool   // it is open, and the log store shows what it knows of its entry
	EntryQuery  string // asks the log store for that
	Choose      string // the address of the page with it chosen
	Exceptions  []shownException
	More        int64  // exceptions that are not shown
	SplitHash   string // by which errors like it can be split off; empty: they cannot
}

// shownException is one error of a chain.
type shownException struct {
	Type    string
	Message string
	Calls   []shownCalls
	More    int64    // frames that are not shown
	Printed []string // why frames are shown as they were printed
}

// shownCalls are calls in a row, all of own code or none. Many of libraries are folded.
type shownCalls struct {
	Frames []shownFrame
	Folded int64 // how many; 0: they are not
}

// minFolded is how many calls of libraries in a row are folded.
const minFolded = 3

// inRows parts calls into rows. Without own code nothing is folded.
func inRows(frames []shownFrame) (rows []shownCalls) {
	own := slices.ContainsFunc(frames, func(f shownFrame) bool { return f.InApp })
	for begin := 0; begin < len(frames); {
		end := begin + 1
		for end < len(frames) && frames[end].InApp == frames[begin].InApp {
			end++
		}
		row := shownCalls{Frames: frames[begin:end]}
		if n := end - begin; own && !frames[begin].InApp && n >= minFolded {
			row.Folded = int64(n)
		}
		rows, begin = append(rows, row), end
	}
	return rows
}

// shownFrame is one call.
type shownFrame struct {
	Number int    // from 1, the innermost
	What   string // what was called
	Where  string // file, line and column, as far as known
	InApp  bool
	Why    string // it is a library's

	Printed, PrintedAt string // what was printed of a call that is shown as it was written
}

var libraryReasons = map[trace.Reason]string{
	trace.ByPath:   "library: installed there",
	trace.ByName:   "known library or runtime",
	trace.ByErrors: "library: few of the project's errors go through this package",
}

// showOccurrences shows samples of a group, of which one is chosen by its entry, else the newest.
func showOccurrences(g postgres.Group, occurrences []postgres.Occurrence, chosen string) (shown []shownOccurrence) {
	project := g.Project
	at := max(0, slices.IndexFunc(occurrences, func(o postgres.Occurrence) bool { return o.Entry == chosen }))
	for i, o := range occurrences {
		s := shownOccurrence{Entry: o.Entry, At: o.At, Levels: ui.Levels(o.Severity.Names()), Environment: o.Environment, SplitHash: o.SplitHash,
			LogsUpTo: logsUpTo(project, o), LogsFrom: logsFrom(project, o),
			Chosen: i == at, EntryQuery: url.Values{"project": {project}, "id": {o.Entry}, "time": {queryTime(o.At)}}.Encode(),
			Choose: groupsPath + "/" + g.ID + "?" + url.Values{"sample": {o.Entry}}.Encode() + "#sample"}
		for _, x := range o.Exceptions[:min(len(o.Exceptions), maxExceptions)] {
			s.Exceptions = append(s.Exceptions, showException(x, o.Build))
		}
		s.More = int64(len(o.Exceptions) - len(s.Exceptions))
		for _, x := range o.Exceptions {
			s.More += int64(x.MoreExceptions)
		}
		shown = append(shown, s)
	}
	return shown
}

// logsFrom is the address of what the same project and environment
// logged with an occurrence and after it, and logsUpTo of that before.
func logsFrom(project string, o postgres.Occurrence) string {
	return logsOf(project, o, url.Values{"from": {queryTime(o.At)}, "order": {"asc"}})
}

func logsUpTo(project string, o postgres.Occurrence) string {
	return logsOf(project, o, url.Values{"to": {queryTime(o.At.Add(time.Microsecond))}}) // exclusive
}

func logsOf(project string, o postgres.Occurrence, query url.Values) string {
	query.Set("project", project)
	if o.Environment != "" {
		query.Set("environment", o.Environment)
	}
	return "/console/logs?" + query.Encode()
}

// queryTime is at in RFC 3339, or "" where that has no year for it.
func queryTime(at time.Time) string {
	if year := at.UTC().Year(); year < 0 || year > 9999 {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func showException(x postgres.Exception, build postgres.Build) shownException {
	shown := shownException{Type: x.Type, Message: x.Message, Printed: whyPrinted(x.Frames, build)}
	var frames []shownFrame
	for i, f := range x.Frames[:min(len(x.Frames), maxFrames)] {
		frame := shownFrame{Number: i + 1, What: called(f), Where: where(f), InApp: f.InApp, Why: libraryReasons[f.Library]}
		if f.Rule != "" {
			frame.Why = "rule: " + f.Rule
		}
		if p := f.Printed; p != nil && p.Unmapped == "" {
			printed := postgres.Frame{Function: p.Function, File: p.File, Line: p.Line, Column: p.Column}
			frame.Printed, frame.PrintedAt = called(printed), where(printed)
		}
		frames = append(frames, frame)
	}
	shown.Calls, shown.More = inRows(frames), int64(len(x.Frames)-len(frames)+x.MoreFrames)
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

// whyPrinted says why calls of an error are shown as they were printed.
func whyPrinted(frames []postgres.Frame, build postgres.Build) (reasons []string) {
	for _, f := range frames {
		if f.Printed == nil || f.Printed.Unmapped == "" {
			if f.Printed == nil && f.Column > 0 && strings.Contains(f.File, "://") && strings.HasSuffix(sourcemap.ScriptName(f.File), ".js") {
				reasons = append(reasons, "There was no source map in the project when the error came.")
			}
			continue
		}
		script := sourcemap.ScriptName(f.File)
		switch f.Printed.Unmapped {
		case trace.NoBuild:
			reasons = append(reasons, "The error names neither a release nor a debug id of its scripts: send release in the metadata of the entry.")
		case trace.NoMap:
			named := "release " + build.Release
			if build.Release == "" {
				named = "the debug id of the error"
			}
			reasons = append(reasons, fmt.Sprintf("There was no source map of %s for %s.", script, named))
		case trace.NoColumn:
			reasons = append(reasons, fmt.Sprintf("Calls in %s have no column.", script))
		case trace.NoPosition:
			reasons = append(reasons, fmt.Sprintf("The source map of %s has nothing at line %d, column %d: is it that of another build?", script, f.Line, f.Column))
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}
