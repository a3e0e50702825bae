package ui

import (
	"net/http"
	"time"
)

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
