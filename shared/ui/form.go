package ui

import (
	"bytes"
	"io"
	"net/http"

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
