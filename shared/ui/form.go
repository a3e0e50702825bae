package ui

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
)

// maxForm is the largest form, in bytes.
const maxForm = 64 << 10

// ReadForm reads a small form into r.PostForm.
func ReadForm(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxForm)
	if err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		err = r.ParseForm()
	}
	if err != nil {
		return httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest,
			"The form could not be read. Go back, reload the page and send it again.")
	}
	return nil
}

// IsFiltered reports whether the query of r has a value beside a cursor.
func IsFiltered(r *http.Request) bool {
	for name, values := range r.URL.Query() {
		if name != "cursor" && strings.Join(values, "") != "" {
			return true
		}
	}
	return false
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
