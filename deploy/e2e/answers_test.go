//go:build replicas

package e2e

import (
	"net/http"
	"sync"
	"testing"
	"time"
)

// answers record clients' answers, and how often each request is tried.
type answers struct {
	next http.RoundTripper

	mu       sync.Mutex
	tries    map[string]int // by idempotency key
	all      []answered
	careless []string // failures without a time to retry
}

// An answered request; a status of 0: no answer came.
type answered struct {
	post   bool // of logs
	begun  time.Time
	took   time.Duration
	status int
}

func (one answered) failed() bool {
	return one.status == 0 || one.status >= http.StatusInternalServerError
}

// watch records the client's answers from now on.
func (in installation) watch() *answers {
	a := &answers{tries: map[string]int{}}
	in.api.Through(func(next http.RoundTripper) http.RoundTripper {
		a.next = next
		return a
	})
	return a
}

// RoundTrip makes answers an http.RoundTripper.
func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	one := answered{post: request.Method == http.MethodPost && request.URL.Path == "/v1/logs", begun: time.Now()}
	response, err := a.next.RoundTrip(request)
	one.took = time.Since(one.begun)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		one.status = response.StatusCode
		if one.status >= http.StatusInternalServerError && response.Header.Get("Retry-After") == "" {
			a.careless = append(a.careless, request.Method+" "+request.URL.Path+" "+response.Status)
		}
	}
	if key := request.Header.Get("Idempotency-Key"); key != "" {
		a.tries[key]++
	}
	a.all = append(a.all, one)
	return response, err
}

// check fails the test if a post took more tries, or a failure named no
// time to retry.
func (a *answers) check(t *testing.T, most int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	failed := 0
	for _, one := range a.all {
		if one.failed() {
			failed++
		}
	}
	t.Logf("%d requests, %d of them failed", len(a.all), failed)
	for key, n := range a.tries {
		if n > most {
			t.Errorf("%q was posted %d times, want %d at most", key, n, most)
		}
	}
	for _, failure := range a.careless {
		t.Errorf("%s without Retry-After", failure)
	}
}
