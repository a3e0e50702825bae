package ui

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

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
