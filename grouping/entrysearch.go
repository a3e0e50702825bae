package grouping

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// An EntrySearch finds all log entries with some errors, and others.
type EntrySearch struct {
	Types []string  // of the errors as sent, sorted; AnyType alone: they are not told by it
	Last  time.Time // the latest time that an entry names, which may be after its acceptance
}

// AnyType stands for errors without a type, with one that can't be searched for, or with too many.
const AnyType = ""

// Bounds of what a search asks for. The log store reads queries of 2,000 bytes.
const (
	MaxEntryTypes = 8
	maxEntryType  = 200 // bytes, escaped
)

func (s *EntrySearch) add(o Occurrence) {
	if last := o.Named(); last.After(s.Last) {
		s.Last = last
	}
	if len(s.Types) > 0 && (s.Types[0] == AnyType || s.Types[0] == o.Error.Type) { // nearly always
		return
	}
	typ := o.Error.Type
	if !searchable(typ) || o.Error.Learned.Rules.Scrub(typ) != typ {
		typ = AnyType
	}
	s.addType(typ)
}

// Named is when it happened by the entry alone, to the microsecond.
func (o *Occurrence) Named() time.Time {
	if o.Ahead == 0 {
		return o.At
	}
	return time.UnixMicro(o.Ahead).UTC()
}

func (s *EntrySearch) addType(typ string) {
	at, found := slices.BinarySearch(s.Types, typ)
	switch {
	case found || len(s.Types) > 0 && s.Types[0] == AnyType:
	case typ == AnyType || len(s.Types) == MaxEntryTypes:
		s.Types = []string{AnyType}
	default:
		s.Types = slices.Insert(s.Types, at, typ)
	}
}

// Merge makes s find what either finds.
func (s *EntrySearch) Merge(other EntrySearch) {
	if other.Last.After(s.Last) {
		s.Last = other.Last
	}
	for _, typ := range other.Types {
		s.addType(typ)
	}
}

// searchable reports whether the log store finds a value as it is.
func searchable(typ string) bool {
	return typ != "" && len(typ)+strings.Count(typ, `\`)+strings.Count(typ, `"`) <= maxEntryType &&
		strings.TrimSpace(typ) == typ && !strings.ContainsFunc(typ, unsure)
}

func unsure(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// Query is the search in the language of the log store.
func (s *EntrySearch) Query() string {
	if len(s.Types) == 0 || s.Types[0] == AnyType {
		return "exists:error"
	}
	terms := make([]string, len(s.Types))
	for i, typ := range s.Types {
		terms[i] = "error.type:" + quoted(typ)
	}
	return strings.Join(terms, " OR ")
}

// quoted is a text of the query language as it is.
func quoted(text string) string { return `"` + inQuotes.Replace(text) + `"` }

var inQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
