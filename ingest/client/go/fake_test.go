package weir

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const testKey = "weir_0123456789abcdef0123456789abcdef0123456789abcdef"

// A fake is Weir without a network, for tests in which time is simulated.
type fake struct {
	mu       sync.Mutex
	answers  []func() (*http.Response, error) // of the next requests; after them, all is accepted
	requests []request
}

type request struct {
	at      time.Time
	key     string
	ctx     context.Context
	entries []map[string]any
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	var body struct{ Logs []map[string]any }
	if err := json.NewDecoder(z).Decode(&body); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request{time.Now(), r.Header.Get("Idempotency-Key"), r.Context(), body.Logs})
	if len(f.answers) > 0 {
		next := f.answers[0]
		f.answers = f.answers[1:]
		return next()
	}
	return answers(200, `{"processed":1,"rejected":0}`)()
}

// answers returns an answer with headers, as "Name: value".
func answers(status int, body string, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{}
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			h.Set(name, value)
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func refuses(status int, code string, headers ...string) func() (*http.Response, error) {
	return answers(status, fmt.Sprintf(`{"code":%q,"detail":"Because."}`, code), headers...)
}

func breaks() (*http.Response, error) { return nil, errors.New("connection reset") }

// messages are those of all requests, in their order.
func (f *fake) messages() (messages []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		for _, e := range r.entries {
			messages = append(messages, e["message"].(string))
		}
	}
	return messages
}

// told collects what a client reports.
type told struct {
	mu    sync.Mutex
	drops []Drop
	errs  []error
}

func (r *told) count(reason Reason) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.drops {
		if d.Reason == reason {
			n += d.Entries
		}
	}
	return n
}

func start(t *testing.T, f *fake, o Options) (*Client, *told) {
	t.Helper()
	r := &told{}
	o.BaseURL, o.APIKey = "https://weir.test/v1", testKey
	o.OnDrop = func(d Drop) { r.mu.Lock(); defer r.mu.Unlock(); r.drops = append(r.drops, d) }
	o.OnError = func(err error) { r.mu.Lock(); defer r.mu.Unlock(); r.errs = append(r.errs, err) }
	c, err := open(o.withDefaults(), f)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func shut(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}
