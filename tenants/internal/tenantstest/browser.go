package tenantstest

import (
	"net/http"
	"net/http/httptest"

	"github.com/weirlog/weir/shared/identity"
)

// A Browser keeps cookies.
type Browser struct {
	Address string // it comes from
	Cookies map[string]*http.Cookie
}

// NewBrowser returns one without cookies.
func NewBrowser(address string) *Browser {
	return &Browser{Address: address, Cookies: map[string]*http.Cookie{}}
}

// Send sends a request to a console.
func (b *Browser) Send(console http.Handler, request *http.Request) *httptest.ResponseRecorder {
	request.RemoteAddr = b.Address + ":40000"
	for _, cookie := range b.Cookies {
		request.AddCookie(cookie)
	}
	recorder := httptest.NewRecorder()
	console.ServeHTTP(recorder, request)
	for _, cookie := range recorder.Result().Cookies() {
		if b.Cookies[cookie.Name] = cookie; cookie.MaxAge < 0 {
			delete(b.Cookies, cookie.Name)
		}
	}
	return recorder
}

// Session is the secret of the browser's session, "" if it has none.
func (b *Browser) Session() string {
	if cookie, ok := b.Cookies[identity.SessionCookie]; ok {
		return cookie.Value
	}
	return ""
}
