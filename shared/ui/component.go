package ui

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Field is one field of a form, with its fault beside it. The
// template "field" shows it.
type Field struct {
	Name         string
	Label        string
	Type         string // of the input: text, email, password, …; not used with Choices
	Value        string
	Hint         string
	Fault        string
	Autocomplete string
	Step         string   // of a number or a time; "any" allows seconds and fractions
	MaxLength    int      // in characters; 0: none
	Required     bool     // for the browser; the server checks again
	Optional     bool     // shown in the label
	Choices      []Choice // offered instead of a text input
	Offers       []string // texts that the input proposes; others can be typed as well
	Code         bool     // gets the one-time code of the link that led here, by the script "code"
}

// A Choice is one of a field's values.
type Choice struct {
	Value    string
	Text     string
	Selected bool
}

// NewChoices returns choices of pairs of value and text; the one with
// value is selected.
func NewChoices(value string, pairs ...[2]string) []Choice {
	var choices []Choice
	for _, pair := range pairs {
		choices = append(choices, Choice{Value: pair[0], Text: pair[1], Selected: pair[0] == value})
	}
	return choices
}

// Checks are the values of a repeatable parameter, each with a box to check.
// The template "checks" shows them.
type Checks struct {
	Name    string
	Legend  string
	Choices []Choice
}

// An Empty is shown for an empty list: what would be here, and how to
// get it. The template "empty" shows it.
type Empty struct {
	Title  string
	Text   string
	Action *Link // may be nil
}

// A Menu is a list of links that opens. The template "menu" shows it.
type Menu struct {
	Text  string
	Links []Link // Current: a mark before it
	More  []Link // below a line
}

// A Code is a text to copy, such as a key, a link or a command, in a frame with
// a button by the script "copy". The template "code" shows it.
type Code struct {
	ID     string // of the element with the text
	Label  string // what the text is, for screen readers
	Text   string
	Copy   string // the button's text, such as Copy key
	Secret bool   // shown only once: highlighted, and selected as a whole
}

// Variants are alternative codes, such as in several languages, of
// which the reader sees one at a time. The template "variants" shows
// them, without a script; at most four.
type Variants struct {
	Label string // what the reader chooses between, such as Language
	Of    []Variant
}

// A Variant is one of them.
type Variant struct {
	Name string // such as Go
	Code Code
}

// An Awaited is an event that the reader waits for. The template "awaited"
// shows it, and the script "poll" asks until it has happened: see WriteAwaited.
type Awaited struct {
	Text string // its state
	Done bool
	Poll string // the address to ask
}

// WriteAwaited answers the script "poll".
func WriteAwaited(w http.ResponseWriter, awaited Awaited) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !awaited.Done {
		w.WriteHeader(http.StatusAccepted)
	}
	_, _ = w.Write([]byte(awaited.Text))
}

// A Pager links the pages of a list. The template "pager" shows it.
type Pager struct {
	First string // address of the first page; empty on it
	Next  string // address of the next page; empty on the last
}

// NewPager returns the pager of r's page; nextCursor is the list's, nil
// on the last page. The rest of the address, such as filters, stays.
func NewPager(r *http.Request, nextCursor *string) Pager {
	var pager Pager
	query := r.URL.Query()
	if query.Get("cursor") != "" {
		pager.First = address(r, query, "")
	}
	if nextCursor != nil {
		pager.Next = address(r, query, *nextCursor)
	}
	return pager
}

func address(r *http.Request, query url.Values, cursor string) string {
	query.Del("cursor")
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if len(query) == 0 {
		return r.URL.Path
	}
	return r.URL.Path + "?" + query.Encode()
}

// A Level is that of an entry or an error. The template "level" shows it.
type Level string

// Levels returns words as levels.
func Levels(words []string) (levels []Level) {
	for _, word := range words {
		levels = append(levels, Level(word))
	}
	return levels
}

// Tone is the class of the level's badge; the word is for those
// who do not see color.
func (l Level) Tone() string {
	switch l {
	case "error", "fatal":
		return "fault"
	case "warn":
		return "warn"
	case "info":
		return "accent"
	}
	return ""
}

// LevelChecks filters by the repeatable parameter "level" of r.
func LevelChecks(r *http.Request) Checks {
	checks := Checks{Name: "level", Legend: "Levels"}
	chosen := r.URL.Query()["level"]
	for _, level := range []string{"debug", "info", "warn", "error", "fatal"} {
		checks.Choices = append(checks.Choices, Choice{Value: level, Text: level, Selected: slices.Contains(chosen, level)})
	}
	return checks
}

// A Key is what the script "explore" does when somebody presses one of its keys.
type Key struct {
	Keys []string
	Does string
}

var keySets = map[string][]Key{ // bounded by the sets
	"list":   {{[]string{"/"}, "Go to the search line"}, {[]string{"j", "k"}, "Go to the next row or the one before"}, {[]string{"Enter"}, "Open the row"}},
	"choose": {{[]string{"x"}, "Choose the row"}},
	"decide": {{[]string{"e"}, "Resolve"}, {[]string{"i"}, "Ignore"}, {[]string{"a"}, "Assign to me"}},
}

// keysOf are the keys of sets: list has a search line and rows, of which some are
// chosen in choose, and decide decides about errors. The template "keys" shows them.
func keysOf(sets ...string) (keys []Key, err error) {
	for _, name := range sets {
		set, is := keySets[name]
		if !is {
			return nil, fmt.Errorf("there are no keys %q", name)
		}
		keys = append(keys, set...)
	}
	return keys, nil
}

// functions are those of templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"asset":    assetPath,
		"bytes":    sized,
		"exact":    exact,
		"count":    Count,
		"when":     Instant,
		"day":      day,
		"clock":    clock,
		"keys":     keysOf,
		"datetime": func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) },
	}
}

// sized is a size for people, with the exact number on hover.
func sized(n int64) template.HTML {
	if text := Bytes(n); !strings.HasSuffix(text, " B") {
		return template.HTML(`<span title="` + Count(n) + ` bytes">` + text + `</span>`) //nolint:gosec // made of digits
	}
	return template.HTML(Bytes(n)) //nolint:gosec // made of digits
}

// exact is a size for people and the number of bytes beside it, where
// they are accounted for.
func exact(n int64) template.HTML {
	if text := Bytes(n); !strings.HasSuffix(text, " B") {
		return template.HTML(text + ` <span class="hint">` + Count(n) + ` B</span>`) //nolint:gosec // made of digits
	}
	return template.HTML(Bytes(n)) //nolint:gosec // made of digits
}

// A Moment is a time as people remember it: how long ago. The template
// "ago" shows it, with the time itself on hover.
type Moment struct {
	At  time.Time
	Ago string
}

// NewMoment returns a time as it is seen now.
func NewMoment(at, now time.Time) Moment {
	passed, text := now.Sub(at), day(at)
	switch {
	case passed < time.Minute:
		text = "just now"
	case passed < time.Hour:
		text = fmt.Sprintf("%d min ago", passed/time.Minute)
	case passed < 48*time.Hour:
		text = fmt.Sprintf("%d h ago", passed/time.Hour)
	case passed < 30*24*time.Hour:
		text = fmt.Sprintf("%d days ago", passed/(24*time.Hour))
	}
	return Moment{at, text}
}

// Instant formats a time for people, to the second.
func Instant(at time.Time) string {
	return day(at) + " " + clock(at)
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

func clock(at time.Time) string { return at.UTC().Format(time.TimeOnly) + " UTC" }

// Roles are members of some roles, such as "owners, admins and billing members".
func Roles(roles []string, conjunction string) string {
	words := make([]string, len(roles))
	for i, role := range roles {
		words[i] = role + "s"
		if role == "billing" {
			words[i] = "billing members"
		}
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// Count formats a whole number with separate thousands, such as 1,234,567.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// Bytes formats a size for people: exact below 1 KiB, else with one
// decimal place, rounded down so that nothing looks used up or whole
// before it is.
func Bytes(n int64) string {
	if n > -1024 && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	unit := int64(1024)
	for _, name := range []string{"KiB", "MiB", "GiB"} {
		if n > -unit*1024 && n < unit*1024 {
			return oneDecimal(n, unit, name)
		}
		unit *= 1024
	}
	return oneDecimal(n, unit, "TiB")
}

func oneDecimal(n, unit int64, name string) string {
	return fmt.Sprintf("%d.%d %s", n/unit, max(n, -n)%unit*10/unit, name)
}
