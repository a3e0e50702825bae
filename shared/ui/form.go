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
// mend it; "" if that is not at fault. It stands beside the field, which has
// the value and a label: people know nothing of the parameter's name.
func QueryFault(err error, name string) string {
	var problem *httpapi.Problem
	if !errors.As(err, &problem) {
		return ""
	}
	for _, fault := range problem.Faults {
		if fault.Pointer == "?"+name {
			if strings.HasPrefix(fault.Detail, name+" is ") {
				return fault.Fix
			}
			return strings.Replace(fault.Detail, " of "+name+":", ":", 1) + " " + fault.Fix
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
