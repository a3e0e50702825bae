package ingest

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// Bounds of a saved search.
const (
	MaxSearchName  = 80 // characters
	MaxPicked      = 4  // fields shown as columns
	maxEnvironment = 64 // bytes
	maxLevels      = 5
)

// isStorable reports whether PostgreSQL keeps a text.
func isStorable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// A SavedSearch is a search of one's logs that has a name.
type SavedSearch struct {
	Organization string
	ID           string
	Project      string // empty: all projects
	Owner        string // the member who alone sees it; empty: everybody does
	Name         string
	Query        string
	Levels       []string
	Environment  string
	Last         string // the time up to now, one of Lasts; empty: From and To
	From, To     string // RFC 3339; empty: no bound
	Fields       []string
	Version      int64 // counts changes, from 1
	CreatedBy    string
	CreatedAt    time.Time
	UpdatedBy    string
	UpdatedAt    time.Time
}

// Lasts are the times up to now that a saved search may have.
func Lasts() []string { return []string{"15m", "1h", "24h", "7d", "30d", "any"} }

// An Invalid value can't be saved.
type Invalid struct{ Field, Detail, Fix string }

// Error says what is wrong, and how to mend it.
func (i Invalid) Error() string { return i.Detail + " " + i.Fix }

// Check returns the first fault, an Invalid.
func (s *SavedSearch) Check() error {
	s.Name = strings.TrimSpace(s.Name)
	switch {
	case !isStorable(s.Name) || s.Name == "" || utf8.RuneCountInString(s.Name) > MaxSearchName || strings.ContainsFunc(s.Name, unicode.IsControl):
		return Invalid{"name", fmt.Sprintf("%q is not a name.", s.Name), fmt.Sprintf("Use 1 to %d characters on one line.", MaxSearchName)}
	case len(s.Environment) > maxEnvironment || strings.ContainsFunc(s.Environment, unicode.IsControl) || !isStorable(s.Environment):
		return Invalid{"environment", "The environment is too long.", fmt.Sprintf("Use at most %d bytes.", maxEnvironment)}
	case !isStorable(s.Query):
		return Invalid{"q", "The query has a character that no entry has.", "Remove U+0000 and what is no UTF-8."}
	case len(s.Levels) > maxLevels:
		return Invalid{"levels", fmt.Sprintf("There are %d levels.", len(s.Levels)), "Name each once."}
	case len(s.Fields) > MaxPicked:
		return Invalid{"fields", fmt.Sprintf("There are %d fields.", len(s.Fields)), fmt.Sprintf("Pick at most %d.", MaxPicked)}
	}
	if _, err := s.Search(); err != nil {
		return err
	}
	for _, field := range s.Fields {
		if _, err := ParseField(field); err != nil || len(field) > maxPathBytes || strings.ContainsFunc(field, unicode.IsControl) {
			return Invalid{"fields", fmt.Sprintf("%q is not the name of a field.", field), "Name one, such as metadata.user.id."}
		}
	}
	return s.checkTimes()
}

func (s *SavedSearch) checkTimes() error {
	if s.Last != "" {
		if !slices.Contains(Lasts(), s.Last) {
			return Invalid{"last", fmt.Sprintf("last is %q.", s.Last), "Use " + strings.Join(Lasts(), ", ") + "."}
		}
		if s.From+s.To != "" {
			return Invalid{"last", "There are last, and from or to.", "Use one of both."}
		}
	}
	for name, text := range map[string]string{"from": s.From, "to": s.To} {
		if _, ok := ParseInstant([]byte(text)); text != "" && !ok {
			return Invalid{name, fmt.Sprintf("%s is %q.", name, text), "Use an RFC 3339 time in UTC such as 2026-11-20T14:00:00Z."}
		}
	}
	return nil
}

// Search is what it selects, whatever its time.
func (s *SavedSearch) Search() (search Search, err error) {
	search.Project, search.Environment = s.Project, s.Environment
	for _, name := range s.Levels {
		level, ok := ParseSeverity([]byte(name))
		if !ok {
			return search, Invalid{"levels", fmt.Sprintf("%q is not a level.", name), "Use debug, info, warn, error or fatal."}
		}
		search.Levels = search.Levels.With(level)
	}
	var fault *QueryError
	if search.Query, err = ParseQuery(s.Query); errors.As(err, &fault) {
		return search, Invalid{"q", fmt.Sprintf("At character %d of q: %s", fault.At, fault.Detail), fault.Fix}
	}
	return search, err
}

// Address is the query of the page Logs with the search.
func (s *SavedSearch) Address() url.Values {
	query := url.Values{"saved": {s.ID}}
	for name, value := range map[string]string{
		"q": s.Query, "project": s.Project, "environment": s.Environment, "last": s.Last, "from": s.From, "to": s.To,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(s.Levels) > 0 {
		query["level"] = s.Levels
	}
	if len(s.Fields) > 0 {
		query["field"] = s.Fields
	}
	return query
}

// Whole is what it selects as one query, with its levels and environment.
func (s *SavedSearch) Whole() string {
	levels := make([]string, len(s.Levels))
	for i, level := range s.Levels {
		levels[i] = entryfield.Level + ":" + level
	}
	environment := ""
	if s.Environment != "" {
		environment, _ = Term(entryfield.Environment, s.Environment)
	}
	whole := s.Query
	for _, term := range []string{strings.Join(levels, " OR "), environment} {
		if query, err := ParseQuery(whole); err == nil {
			whole = query.And(term)
		}
	}
	return whole
}
