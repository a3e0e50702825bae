package pages_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/tenants/internal/pages"
)

// Repeated refusals of one network are delayed, on
// any page; another network is answered at once.
func TestRefusedAttemptsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kit := pages.NewKit(pages.Config{Clock: time.Now})
		took := func(address string, times int) time.Duration {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/sign-in", nil)
			r.RemoteAddr = address
			begun := time.Now()
			for i := range times {
				if i%2 == 0 {
					kit.TooMany(httptest.NewRecorder(), r, time.Second)
				} else {
					kit.Busy(httptest.NewRecorder(), r)
				}
			}
			return time.Since(begun)
		}
		if d := took("192.0.2.1:1", 500); d > 0 {
			t.Errorf("500 take %s", d)
		}
		if d := took("192.0.2.1:1", 200); d < time.Second {
			t.Errorf("200 more take %s, want about 2 s", d)
		}
		if d := took("192.0.2.2:1", 100); d > 0 {
			t.Errorf("those of another network take %s", d)
		}
	})
}
