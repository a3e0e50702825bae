package weir

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// A sender sends the batches of a backlog, one at a time.
type sender struct {
	backlog   *backlog
	queue     *queue
	losses    *losses
	http      *http.Client
	url       string
	authorize func(http.Header) // keeps the key out of what prints a Client
	giveUp    time.Duration
	onError   func(error)

	accepted atomic.Uint64
	denied   atomic.Pointer[error] // not nil: nothing is sent any more
	failing  atomic.Bool           // the last attempt failed
	resume   time.Time             // Weir asks to be sent nothing before
}

func newSender(o Options, transport http.RoundTripper, c *Client) *sender {
	key := o.APIKey
	return &sender{
		backlog: c.backlog, queue: c.queue, losses: c.losses, giveUp: o.Limits.GiveUpAfter, url: o.BaseURL + "/logs",
		authorize: func(h http.Header) { h.Set("X-Api-Key", string(key)) },
		onError:   c.losses.between(o.OnError),
		http: &http.Client{
			Transport: transport, Timeout: o.Limits.Request,
			// The key goes to no other address.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// run ends when ctx does, or when Weir has refused the key and the rest is on
// disk.
func (s *sender) run(ctx context.Context) {
	for {
		b, err := s.backlog.next(ctx)
		switch {
		case err != nil:
			return
		case s.denied.Load() != nil:
			s.discard(b, Unauthorized)
		case !s.deliver(ctx, b):
			return
		}
		if s.denied.Load() != nil && b.file != "" {
			return
		}
	}
}

// deliver settles a batch. It returns false if ctx was done before.
func (s *sender) deliver(ctx context.Context, b *batch) bool {
	if b.body == nil {
		if err := s.backlog.spool.read(b); err != nil {
			s.onError(err)
			s.discard(b, SpoolFailed)
			return true
		}
	}
	sent := *b // repaired, it has fewer entries
	at, last := time.Now(), deferred
	for attempt := 0; ; attempt++ {
		if at = later(at, s.resume); at.After(b.since.Add(s.giveUp)) {
			return s.expire(ctx, b, last)
		}
		if !sleep(ctx, at) {
			return false
		}
		a := s.post(ctx, &sent)
		if ctx.Err() != nil && a.verdict != accepted {
			return false
		}
		s.note(a)
		switch a.verdict {
		case accepted:
			s.accept(b, &sent, a.problem)
			return true
		case denied:
			s.deny(a.err, b)
			return true
		case invalid:
			more := s.repair(&sent, a.problem)
			s.backlog.repaired(b, sent.entries)
			if !more {
				s.discard(b, Rejected)
				return true
			}
			continue
		}
		s.resume = later(s.resume, time.Now().Add(a.wait))
		at, last = s.resume.Add(backoff(attempt)), a.verdict
	}
}

// expire keeps a batch until its time is over, and drops it.
func (s *sender) expire(ctx context.Context, b *batch, last verdict) bool {
	if !sleep(ctx, b.since.Add(s.giveUp)) {
		return false
	}
	reason := Expired
	if last == overdrawn {
		reason = QuotaExceeded
	}
	s.discard(b, reason)
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// post makes one attempt.
func (s *sender) post(ctx context.Context, b *batch) answer {
	request, err := http.NewRequestWithContext(context.WithValue(ctx, sending{}, true), http.MethodPost, s.url, bytes.NewReader(b.body))
	if err != nil {
		return answer{verdict: deferred, err: fmt.Errorf("weir: %w", err)}
	}
	s.authorize(request.Header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Content-Encoding", "gzip")
	request.Header.Set("Idempotency-Key", b.key)
	request.Header.Set("User-Agent", "weir-go")
	response, err := s.http.Do(request)
	if err != nil {
		return answer{verdict: deferred, err: fmt.Errorf("weir: cannot reach Weir: %w", err)}
	}
	return readAnswer(response, time.Now())
}

// note keeps the pace that an answer asks for, and tells when sending begins
// to fail.
func (s *sender) note(a answer) {
	s.resume = time.Now().Add(a.token)
	failing := a.verdict == deferred || a.verdict == overdrawn
	if !s.failing.Swap(failing) && failing {
		s.onError(fmt.Errorf("%w (tried again for up to %v)", a.err, s.giveUp))
	}
}
