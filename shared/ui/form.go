package ui

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
)

// maxForm is the largest form, in bytes.
const maxForm = 64 << 10

// ReadForm reads a small form of UTF-8 into r.PostForm.
func ReadForm(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxForm)
	if err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		err = r.ParseForm()
	}
	if err != nil || !isText(r.PostForm) {
		return httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest,
			"The form could not be read. Go back, reload the page and send it again.")
	}
	return nil
}

// isText reports whether a form is UTF-8: a browser sends
// no other, and a database takes none.
func isText(form url.Values) bool {
	for name, values := range form {
		if !utf8.ValidString(name) || !utf8.ValidString(strings.Join(values, " ")) { // the space keeps halves of a character apart
			return false
		}
	}
	return true
}

// QueryFault is what err says of one parameter of the query, and how to
// mend it; "" if that is not at fault.
func QueryFault(err error, name string) string {
	var problem *httpapi.Problem
	if !errors.As(err, &problem) {
		return ""
	}
	for _, fault := range problem.Faults {
		if fault.Pointer == "?"+name {
			return fault.Detail + " " + fault.Fix
		}
	}
	return ""
}

// A Flash reports what just happened.
type Flash struct {
	Text  string
	Fault bool // it failed
}

// flashCookie carries the code of a flash over one redirect. The code names
// one of the program's own texts, so that no forged text can be shown.
const flashCookie = "__Host-weir-flash"

const flashLasts = time.Minute

// SetFlash lets the next page show the text of code.
func SetFlash(w http.ResponseWriter, code string) {
	http.SetCookie(w, flash(code, int(flashLasts/time.Second)))
}

// TakeFlash returns the flash of the page before, once; nil if it set
// none of texts.
func TakeFlash(w http.ResponseWriter, r *http.Request, texts map[string]string) *Flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, flash("", -1))
	text, known := texts[cookie.Value]
	if !known {
		return nil
	}
	return &Flash{Text: text}
}

func flash(code string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: flashCookie, Value: code, Path: "/", MaxAge: maxAge, Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}

// Filters choose from a list of entries or errors. The template "filters"
// shows them as a form that leads to the list's own address.
type Filters struct {
	Path        string
	Project     Field
	Words       Field
	Environment Field
	Levels      Checks
	Range       TimeRange
	Active      bool // any of them is set
}

// NewFilters returns the filters of the query of r, which has the projects to
// choose from. words is the field of free text, named q. fault is what was
// wrong with the query, or nil.
func NewFilters(r *http.Request, projects []contract.ProjectCreated, words Field, now time.Time, fault error) Filters {
	query := r.URL.Query()
	words.Name, words.Type, words.Autocomplete = "q", "search", "off"
	words.Value, words.Fault = query.Get("q"), QueryFault(fault, "q")
	return Filters{
		Path: r.URL.Path, Project: projectField(query.Get("project"), projects), Words: words,
		Environment: Field{Name: "environment", Label: "Environment", Value: query.Get("environment"), Autocomplete: "off"},
		Levels:      LevelChecks(r), Range: NewTimeRange(r, now, fault), Active: isFiltered(r),
	}
}

// Faulty reports whether a field that people fill in has a fault.
func (f Filters) Faulty() bool {
	return f.Words.Fault != "" || f.Environment.Fault != "" || f.Range.From.Fault != "" || f.Range.To.Fault != ""
}

func projectField(chosen string, projects []contract.ProjectCreated) Field {
	choices := [][2]string{{"", "All projects"}}
	for _, project := range projects {
		choices = append(choices, [2]string{project.Project, project.Name})
	}
	return Field{Name: "project", Label: "Project", Choices: NewChoices(chosen, choices...)}
}

// isFiltered reports whether the query of r has a value beside a cursor.
func isFiltered(r *http.Request) bool {
	for name, values := range r.URL.Query() {
		if name != "cursor" && strings.Join(values, "") != "" {
			return true
		}
	}
	return false
}

// A TimeRange filters a list by time, in UTC: from, inclusive, to, exclusive.
type TimeRange struct {
	From, To Field
	Recent   []Link // to the last hour, day and week; other filters stay
}

// localTime is the value of a browser's field of type datetime-local.
const localTime = "2006-01-02T15:04:05.999"

// recent are the spans that a link chooses.
var recent = []struct {
	text string
	span time.Duration
}{
	{"Last hour", time.Hour}, {"Last 24 hours", 24 * time.Hour}, {"Last 7 days", 7 * 24 * time.Hour},
}

// NewTimeRange returns the range of the query of r. fault is what was wrong
// with that query, or nil.
func NewTimeRange(r *http.Request, now time.Time, fault error) TimeRange {
	shown := TimeRange{From: timeField(r, "from", "From (UTC)", fault), To: timeField(r, "to", "To (UTC)", fault)}
	for _, last := range recent {
		query := r.URL.Query()
		query.Del("to")
		query.Set("from", now.Add(-last.span).UTC().Truncate(time.Minute).Format(time.RFC3339))
		shown.Recent = append(shown.Recent, Link{Text: last.text, Href: address(r, query, "")})
	}
	return shown
}

func timeField(r *http.Request, name, label string, fault error) Field {
	field := Field{Name: name, Label: label, Type: "datetime-local", Step: "any", Value: r.URL.Query().Get(name), Fault: QueryFault(fault, name)}
	if at, err := time.Parse(time.RFC3339, field.Value); err == nil {
		field.Value = at.UTC().Format(localTime)
	}
	return field
}

// WithTimesInUTC returns r with its parameters from and to in RFC 3339:
// a field of type datetime-local sends a time without a zone.
func WithTimesInUTC(r *http.Request) *http.Request {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || !completeTimes(query) {
		return r
	}
	changed, address := r.WithContext(r.Context()), *r.URL
	address.RawQuery = query.Encode()
	changed.URL = &address
	return changed
}

// completeTimes adds what is missing and reports whether anything was.
func completeTimes(query url.Values) (changed bool) {
	for _, name := range []string{"from", "to"} {
		for i, text := range query[name] {
			if at, ok := parseLocalTime(text); ok {
				query[name][i], changed = at.Format(time.RFC3339Nano), true
			}
		}
	}
	return changed
}

// parseLocalTime reads a time that may end with its minutes.
func parseLocalTime(text string) (time.Time, bool) {
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	at, err := time.Parse(localTime, text)
	return at, err == nil
}
