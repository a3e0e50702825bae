package ui

import (
	"net/http"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

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
