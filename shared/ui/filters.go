package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// Filters choose from a list of entries or errors: a line to search with,
// and the rest folded. The template "filters" shows them as a form that
// leads to the list's own address.
type Filters struct {
	Path        string
	Words       Field
	Project     Field
	Last        Field // the time up to now
	Environment Field
	Levels      Checks
	From, To    Field
	Kept        [][2]string // names and values of what else stays as it is
	Menu        *Menu       // beside the button; may be nil
	Folded      bool        // none of what is folded is set or at fault
	Active      bool        // any of them is set
}

// last are the times up to now that a list can be limited to.
var last = []struct {
	value, text string
	span        time.Duration // 0: any
}{
	{"15m", "Last 15 minutes", 15 * time.Minute},
	{"1h", "Last hour", time.Hour},
	{"24h", "Last 24 hours", 24 * time.Hour},
	{"7d", "Last 7 days", 7 * 24 * time.Hour},
	{"30d", "Last 30 days", 30 * 24 * time.Hour},
	{AnyTime, "Any time", 0},
}

// AnyTime is the value of the parameter last for no limit.
const AnyTime = "any"

// NewFilters returns the filters of the query of r, which has the projects to
// choose from. words is the search line, named q. Where the query names no
// time, it is the last of that value. fault is what was wrong with the query,
// or nil.
func NewFilters(r *http.Request, projects []contract.ProjectCreated, words Field, lastOf string, fault error) Filters {
	query := r.URL.Query()
	words.Name, words.Type, words.Autocomplete = "q", "search", "off"
	words.Value, words.Fault = query.Get("q"), QueryFault(fault, "q")
	f := Filters{
		Path: r.URL.Path, Words: words, Project: projectField(query.Get("project"), projects), Last: lastField(query, lastOf),
		Environment: Field{
			Name: "environment", Label: "Environment", Value: query.Get("environment"), Autocomplete: "off", Fault: QueryFault(fault, "environment"),
		},
		Levels: LevelChecks(r), From: timeField(r, "from", "From (UTC)", fault), To: timeField(r, "to", "To (UTC)", fault), Active: isFiltered(query),
	}
	f.Folded = f.Environment.Value+f.Environment.Fault+f.From.Value+f.From.Fault+f.To.Value+f.To.Fault == "" && len(query["level"]) == 0
	return f
}

// Keep has the form leave a parameter of r as it is.
func (f *Filters) Keep(r *http.Request, name string) {
	for _, value := range r.URL.Query()[name] {
		f.Kept = append(f.Kept, [2]string{name, value})
	}
}

// Faulty reports whether a field that people fill in has a fault.
func (f *Filters) Faulty() bool {
	return f.Words.Fault != "" || f.Environment.Fault != "" || f.From.Fault != "" || f.To.Fault != ""
}

// ChooseProject returns the projects of an organization to choose from, and the
// chosen one: the first, unless one is named. The error is a 404.
func ChooseProject(directory *identity.Directory, organization, named string) (choices []Choice, chosen string, err error) {
	projects := directory.Projects(organization)
	if chosen = named; chosen == "" && len(projects) > 0 {
		chosen = projects[0].Project
	}
	for _, p := range projects {
		choices = append(choices, Choice{Value: p.Project, Text: cmp.Or(p.Name, p.Project), Selected: p.Project == chosen})
	}
	if chosen != "" && !directory.Owns(organization, chosen) {
		return nil, "", httpapi.NotFound("project", chosen)
	}
	return choices, chosen, nil
}

func projectField(chosen string, projects []contract.ProjectCreated) Field {
	choices := [][2]string{{"", "All projects"}}
	for _, project := range projects {
		choices = append(choices, [2]string{project.Project, project.Name})
	}
	return Field{Name: "project", Label: "Project", Choices: NewChoices(chosen, choices...)}
}

func lastField(query url.Values, lastOf string) Field {
	var choices [][2]string
	chosen := query.Get("last")
	if query.Get("from")+query.Get("to") != "" {
		chosen = ""
		choices = append(choices, [2]string{"", "The time below"})
	} else if chosen == "" {
		chosen = lastOf
	}
	for _, of := range last {
		choices = append(choices, [2]string{of.value, of.text})
	}
	return Field{Name: "last", Label: "Time", Choices: NewChoices(chosen, choices...)}
}

// isFiltered reports whether a query has a value beside a cursor.
func isFiltered(query url.Values) bool {
	for name, values := range query {
		if name != "cursor" && name != "last" && strings.Join(values, "") != "" {
			return true
		}
	}
	return false
}

// localTime is the value of a browser's field of type datetime-local.
const localTime = "2006-01-02T15:04:05.999"

func timeField(r *http.Request, name, label string, fault error) Field {
	field := Field{Name: name, Label: label, Type: "datetime-local", Step: "any", Value: r.URL.Query().Get(name), Fault: QueryFault(fault, name)}
	if at, err := time.Parse(time.RFC3339, field.Value); err == nil {
		field.Value = at.UTC().Format(localTime)
	}
	return field
}

// WithTimes returns the request of a list with its times as the API takes
// them: from in place of last, and in RFC 3339 what a field of type
// datetime-local sends without a zone. Where it names no time, it gets the
// last of that value. shown has them too, for links that lead on; asked is
// without last=any, which no API knows.
func WithTimes(r *http.Request, lastOf string, now time.Time) (shown, asked *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return r, r
	}
	completeTimes(query)
	if query.Get("from")+query.Get("to") != "" {
		query.Del("last")
	} else if query.Get("last") == "" {
		query.Set("last", lastOf)
	}
	for _, of := range last {
		if query.Get("last") == of.value && of.span > 0 {
			query.Del("last")
			query.Set("from", now.Add(-of.span).UTC().Truncate(time.Second).Format(time.RFC3339))
		}
	}
	shown = withQuery(r, query)
	if query.Get("last") == AnyTime {
		query.Del("last")
	}
	return shown, withQuery(r, query)
}

// Without is r without some parameters.
func Without(r *http.Request, names ...string) *http.Request {
	query := r.URL.Query()
	for _, name := range names {
		query.Del(name)
	}
	return withQuery(r, query)
}

func withQuery(r *http.Request, query url.Values) *http.Request {
	changed, address := r.WithContext(r.Context()), *r.URL
	address.RawQuery = query.Encode()
	changed.URL = &address
	return changed
}

func completeTimes(query url.Values) {
	for _, name := range []string{"from", "to"} {
		for i, text := range query[name] {
			if at, ok := parseLocalTime(text); ok {
				query[name][i] = at.Format(time.RFC3339Nano)
			}
		}
		if strings.Join(query[name], "") == "" {
			query.Del(name)
		}
	}
}

// parseLocalTime reads a time that may end with its minutes.
func parseLocalTime(text string) (time.Time, bool) {
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	at, err := time.Parse(localTime, text)
	return at, err == nil
}

// With is the address of r with other values of parameters, without a
// cursor; an empty value removes its parameter.
func With(r *http.Request, pairs ...string) string {
	query := r.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		if query.Del(pairs[i]); pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return address(r, query, "")
}
