package console

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract/entryfield"
	"github.com/weirlog/weir/shared/ui"
)

// Bounds that keep a page readable, as an entry may have 512 KB.
const (
	maxMessage = 1 << 10 // bytes of a message in its row
	maxEntry   = 8 << 10 // bytes of the values of an entry
	maxMembers = 200
	maxValue   = 256 // bytes of a value in a column or beside the list
	maxType    = 190 // bytes of an error's type by which errors are searched: the list shows 200
)

// A shownEntry is an entry as the page shows it.
type shownEntry struct {
	ID         string
	Time       string // event time as it was sent, to its last digit
	Day, Clock string // the same in short, to the millisecond
	ReceivedAt time.Time
	Level      ui.Level
	Source     string // the service that logged it
	Message    []ingest.Piece
	Columns    []string // the values of the picked fields
	Members    []member
	Cut        bool // Members are only its beginning
	Bytes      int64
	Around     string // the address of what the project logged in the same minute
	Trace      string // the address of the entries of its trace; empty: it names none
	Errors     string // the address of errors like its own; empty: it has none
}

// A member is a value of an entry.
type member struct {
	Path  string
	Text  string
	Lines bool   // Text has lines, such as a stack trace
	Term  string // that finds it; empty: there is none
}

func (v *view) show(found []ingest.Found) {
	for _, field := range v.fields {
		v.page.Columns = append(v.page.Columns, field.String())
	}
	for i := range found {
		v.page.Entries = append(v.page.Entries, v.entry(&found[i]))
	}
}

func (v *view) entry(found *ingest.Found) shownEntry {
	at := found.Time.Time()
	entry := shownEntry{
		ID:   entryID(found),
		Time: found.Time.String(), Day: at.Format(time.DateOnly), Clock: at.Format("15:04:05.000"),
		ReceivedAt: found.ReceivedAt, Level: ui.Level(found.Level.String()), Bytes: int64(len(found.Text)),
		Source: valueOf(service, found), Around: v.around(found),
	}
	message := ""
	if read, err := ingest.ReadBack(found.Text); err == nil {
		message, _ = beginning(string(read.Message), maxMessage)
	}
	entry.Message = v.search.Query.Mark(message)
	for _, field := range v.fields {
		value, _ := beginning(field.Value(&found.Stored, v.Directory.Name(found.Project)), maxValue)
		entry.Columns = append(entry.Columns, value)
	}
	if term, ok := ingest.Term("trace_id", valueOf("trace_id", found)); ok && term != `trace_id:""` {
		entry.Trace = ui.With(v.r, "q", term, "last", ui.AnyTime, "from", "", "to", "")
	}
	if of := valueOf("error.type", found); of != "" {
		of, _ = beginning(of, maxType)
		words := `"` + strings.TrimSuffix(strings.ReplaceAll(of, `"`, ""), "…") + `"` // as a text, not as a field that it may look like
		entry.Errors = "/console/errors?" + url.Values{"q": {words}, "project": {found.Project}, "status": {"all"}}.Encode()
	}
	entry.Members, entry.Cut = membersOf(found, v.Directory.Name(found.Project))
	return entry
}

// valueOf is the value of a field in short.
func valueOf(name string, found *ingest.Found) string {
	field, err := ingest.ParseField(name)
	if err != nil {
		return ""
	}
	value, _ := beginning(field.Value(&found.Stored, found.Project), maxValue)
	return value
}

// around is the address of what the project logged from half a minute
// before an entry to half a minute after it.
func (v *view) around(found *ingest.Found) string {
	const half = 30
	from, to := found.Time.Plus(-half), found.Time.Plus(half)
	return ui.With(v.r, "q", "", "level", "", "last", "", "project", found.Project, "from", from.String(), "to", to.String())
}

// membersOf are the values of an entry in their order, with what is known
// of it beside; some of them where it is large.
func membersOf(found *ingest.Found, project string) (members []member, cut bool) {
	members, cut = valuesOf(found.Text, "")
	members = append(members, member{Path: ingest.FieldProject, Text: project})
	if !bytes.Contains(found.Text, []byte(`"`+entryfield.Environment+`"`)) {
		term, _ := ingest.Term(entryfield.Environment, found.Environment)
		members = append(members, member{Path: entryfield.Environment, Text: found.Environment, Term: term})
	}
	return members, cut
}

// valuesOf are the values in a JSON text at a path, or some of them where it is large.
func valuesOf(text []byte, path string) (members []member, cut bool) {
	reader := entryReader{decoder: json.NewDecoder(bytes.NewReader(text)), left: maxEntry}
	reader.decoder.UseNumber()
	reader.value(path)
	return reader.members, reader.cut
}

// An entryReader reads the values of an entry, until one of its bounds.
type entryReader struct {
	decoder *json.Decoder
	members []member
	left    int // bytes
	cut     bool
}

func (e *entryReader) value(path string) {
	token, err := e.decoder.Token()
	switch token := token.(type) {
	case json.Delim:
		e.inside(path, token)
	case string:
		e.add(path, token)
	case json.Number:
		e.add(path, token.String())
	case bool:
		e.add(path, strconv.FormatBool(token))
	default:
		if err == nil {
			e.add(path, "null")
		}
	}
	e.cut = e.cut || err != nil
}

// inside reads an object or an array; lines of text become one value.
func (e *entryReader) inside(path string, open json.Delim) {
	first := len(e.members)
	for e.decoder.More() && !e.cut {
		inner := path
		if open == '{' {
			name, err := e.decoder.Token()
			if err != nil {
				e.cut = true
				return
			}
			inner = strings.TrimPrefix(path+"."+name.(string), ".") //nolint:forcetypeassert // names are strings
		}
		e.value(inner)
	}
	if !e.cut {
		_, _ = e.decoder.Token() // the end
	}
	if open == '[' && strings.HasSuffix(path, entryfield.ErrorStackTrace) && len(e.members) > first {
		var lines []string
		for _, line := range e.members[first:] {
			lines = append(lines, line.Text)
		}
		e.members = append(e.members[:first], member{Path: path, Text: strings.Join(lines, "\n"), Lines: true})
	}
}

func (e *entryReader) add(path, text string) {
	shown, cut := beginning(text, e.left)
	if e.cut = cut || len(e.members) == maxMembers; len(e.members) == maxMembers {
		return
	}
	e.left -= len(text)
	m := member{Path: path, Text: shown, Lines: strings.Contains(shown, "\n")}
	if term, ok := ingest.Term(path, text); ok && !cut && path != entryfield.Timestamp {
		m.Term = term
	}
	if text == "null" {
		m.Term = ""
	}
	e.members = append(e.members, m)
}

// beginning returns as much of text as fits into limit bytes without
// cutting a character.
func beginning(text string, limit int) (begun string, cut bool) {
	if len(text) <= limit {
		return text, false
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…", true
}
