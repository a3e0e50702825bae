package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// A network with too many requests without a credential is refused
// until a minute has passed; another behind the same proxy is not.
func TestAnonymousLimit(t *testing.T) {
	now := time.Now()
	limit := httpapi.NewAnonymousLimit(600, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, func() time.Time { return now })
	handler := httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error { return limit.Admit(r) })
	ask := func(client string) int {
		r := httptest.NewRequest(http.MethodGet, "/v1/openapi.json", nil)
		r.RemoteAddr = "192.0.2.1:1234"
		r.Header.Set("X-Forwarded-For", client)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Error("a refusal does not say when to ask again")
		}
		return w.Code
	}
	for range 600 {
		if code := ask("203.0.113.7"); code != http.StatusOK {
			t.Fatalf("within the limit the answer is %d", code)
		}
	}
	if code := ask("203.0.113.7"); code != http.StatusTooManyRequests {
		t.Errorf("beyond the limit the answer is %d", code)
	}
	if code := ask("203.0.113.8"); code != http.StatusOK {
		t.Errorf("another network's answer is %d", code)
	}
	now = now.Add(time.Minute)
	if code := ask("203.0.113.7"); code != http.StatusOK {
		t.Errorf("a minute later the answer is %d", code)
	}
}
