package ui

import (
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
)

const problemPage = "problem"

// Handle turns a function into a handler that shows its error as a page:
// an httpapi.Problem with its text, anything else without details.
func (p *Pages) Handle(handle func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			p.writeError(w, r, err)
		}
	}
}

func (p *Pages) writeError(w http.ResponseWriter, r *http.Request, err error) {
	problem := httpapi.AsProblem(r, err)
	for name, values := range problem.Header {
		w.Header()[name] = values
	}
	p.Write(w, r, problem.Status, problemPage, View{
		Title: problemTitle(problem),
		Data: struct {
			Detail    string
			RequestID string // empty if a report would not help the reader
		}{problem.Detail, reportID(r, problem.Status)},
	})
}

func problemTitle(problem *httpapi.Problem) string {
	if problem.Code == httpapi.CodeUnavailable {
		return "Not available for a moment"
	}
	switch problem.Status {
	case http.StatusNotFound:
		return "There is nothing here"
	case http.StatusForbidden:
		return "You may not do this"
	case http.StatusTooManyRequests:
		return "Too many requests"
	}
	if problem.Status >= http.StatusInternalServerError {
		return "Something went wrong"
	}
	return "This did not work"
}

func reportID(r *http.Request, status int) string {
	if status < http.StatusInternalServerError {
		return ""
	}
	return httpapi.RequestID(r.Context())
}
