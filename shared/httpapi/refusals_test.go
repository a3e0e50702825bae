package httpapi_test

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// A client refused repeatedly is answered at a pace, also at the end of
// a flood, at most a second late each; another network, and other
// answers, at once.
func TestRefusalsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := httpapi.NewRefusals()
		loud, quiet := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
		refused := httpapi.NewProblem(http.StatusTooManyRequests, "rate_limited", "Too many.")
		took := func(network netip.Prefix, times int, err error) time.Duration {
			begun := time.Now()
			for range times {
				refusals.Pace(t.Context(), time.Now(), network, err)
			}
			return time.Since(begun)
		}
		if d := took(loud, 500, refused); d > 0 {
			t.Errorf("500 refusals are held back for %s", d)
		}
		if d := took(loud, 500, refused); d < 4*time.Second || d > 6*time.Second {
			t.Errorf("500 more take %s, want about 5 s", d)
		}
		if d := took(loud, 1000, httpapi.NewProblem(http.StatusUnauthorized, "invalid_api_key", "No.")) + took(loud, 1000, nil); d > 0 {
			t.Errorf("other answers are held back for %s", d)
		}
		var flood sync.WaitGroup
		begun := time.Now()
		for range 1500 {
			flood.Go(func() { refusals.Pace(t.Context(), time.Now(), loud, refused) })
		}
		synctest.Wait()
		if d := took(quiet, 100, refused); d > 0 {
			t.Errorf("another network is held back for %s", d)
		}
		flood.Wait()
		if d := time.Since(begun); d > time.Second {
			t.Errorf("the last of a flood is held back for %s", d)
		}
		time.Sleep(10 * time.Second)
		if d := took(loud, 400, refused); d > 0 {
			t.Errorf("ten seconds later 400 are held back for %s", d)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		begun = time.Now()
		for range 1000 {
			refusals.Pace(gone, time.Now(), loud, refused)
		}
		if d := time.Since(begun); d < 4*time.Second {
			t.Errorf("a thousand whose clients leave at once take %s", d)
		}
	})
}

// The number of held refusals is bounded.
func TestHeldRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals, refused := httpapi.NewRefusals(), httpapi.NewProblem(http.StatusTooManyRequests, "rate_limited", "Too many.")
		network := netip.MustParsePrefix("192.0.2.1/32")
		var held sync.WaitGroup
		for range 500 + 2048 + 10 {
			held.Go(func() { refusals.Pace(t.Context(), time.Now(), network, refused) })
		}
		synctest.Wait()
		begun := time.Now()
		refusals.Pace(t.Context(), time.Now(), network, refused)
		if d := time.Since(begun); d > 0 {
			t.Errorf("one more is held for %s", d)
		}
		held.Wait()
	})
}
