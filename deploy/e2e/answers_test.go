//go:build replicas

package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
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

var slowest = flag.Duration("p99", time.Second, "how slow p99 of the answers to posts may be outside of events")

// Limits around events.
const (
	calmAnswers = 200             // accepted posts between two
	settled     = 5 * time.Second // time after one that still belongs to it
)

// An event is something that happens to an installation.
type event struct{ begun, ended time.Time }

// calm waits for further accepted posts.
func (a *answers) calm(t *testing.T) {
	t.Helper()
	before := a.accepted()
	testenv.Eventually(t, func() error {
		if now := a.accepted(); now < before+calmAnswers {
			return fmt.Errorf("%d posts were accepted, %d before", now, before)
		}
		return nil
	})
}

func (a *answers) accepted() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		if one.post && one.status == http.StatusOK {
			n++
		}
	}
	return n
}

// fast fails the test if p99 of the posts outside of events is too
// slow, or one of them failed.
func (a *answers) fast(t *testing.T, events []event) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var took []time.Duration
	for _, one := range a.all {
		if !one.post || slices.ContainsFunc(events, one.during) {
			continue
		}
		if one.failed() {
			t.Errorf("at %s, outside of events, a post was answered %d", one.begun.Format(time.TimeOnly), one.status)
		}
		took = append(took, one.took)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d posts outside of events: p50 %s, p99 %s", len(took), took[len(took)/2], p99)
	if p99 > *slowest {
		t.Errorf("p99 is %s, want %s", p99, *slowest)
	}
}

func (one answered) during(e event) bool {
	return one.begun.Add(one.took).After(e.begun) && one.begun.Before(e.ended.Add(settled))
}

// raises waits until an alert's metric is as wanted.
func (r *replicated) raises(alert, metric string, is func(values []float64) bool) {
	r.t.Helper()
	if !strings.Contains(expression(r.t, alert), metric) {
		r.t.Fatalf("%s does not go by %s", alert, metric)
	}
	r.await(metric, is)
}

// await waits until a metric is as wanted.
func (r *replicated) await(metric string, is func(values []float64) bool) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		values, err := r.shown(metric)
		if err == nil && !is(values) {
			err = fmt.Errorf("%s is %v", metric, values)
		}
		return err
	})
}

// grows waits until a counter of an alert has grown from now on.
func (r *replicated) grows(alert, metric string) {
	r.t.Helper()
	before, err := r.shown(metric)
	testenv.Must(r.t, err)
	r.raises(alert, metric, func(now []float64) bool { return sum(now) > sum(before) })
}

// quiet fails the test if an alert's metric is not 0 everywhere.
func (r *replicated) quiet(alert, metric string) {
	r.t.Helper()
	r.raises(alert, metric, func(values []float64) bool { return len(values) > 0 && slices.Max(values) == 0 })
}

// processes returns the addresses of all replicas' metrics.
func (r *replicated) processes() (addresses []string) {
	for _, s := range r.services {
		for _, one := range s.replicas {
			addresses = append(addresses, one.metrics)
		}
	}
	return addresses
}

// shown returns the values of a metric's series, of all replicas.
func (r *replicated) shown(metric string) (values []float64, err error) {
	for _, s := range r.services {
		for _, one := range s.replicas {
			text, err := metricsAt(one.metrics)
			if err != nil {
				return nil, err
			}
			values = append(values, valuesOf(text, metric)...)
		}
	}
	return values, nil
}

func valuesOf(text, metric string) (values []float64) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ = strings.Cut(name, "{"); name != metric {
			continue
		}
		value = value[strings.LastIndex(value, " ")+1:]
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			values = append(values, number)
		}
	}
	return values
}

func sum(values []float64) (all float64) {
	for _, value := range values {
		all += value
	}
	return all
}
