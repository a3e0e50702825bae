package intake_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// An answering publisher answers with an outcome.
type answering struct {
	outcome ingest.Outcome
	err     error
}

func (a answering) Publish(context.Context, ingest.Acceptance) (ingest.Outcome, error) {
	return a.outcome, a.err
}

func newService(publisher intake.Publisher) *intake.Service {
	clock := func() time.Time { return start }
	gate := admission.NewGate(clock)
	gate.Apply("org", 100, ingest.Account{Period: calendar.PeriodAt(start, 1), AnchorDay: 1, Limit: 100, NextLimit: 100, Version: 1})
	return &intake.Service{
		Gate: gate, Replays: admission.NewReplays(time.Hour, 10), Publisher: publisher, Timeout: time.Second, Clock: clock,
		NewBatch: func() string { return "batch" },
	}
}

func submission(bytes int64, idempotency string) *intake.Submission {
	return &intake.Submission{
		Caller: intake.Caller{Principal: identity.Principal{Organization: "org", Project: "prj", ID: "key"}},
		Batch:  &ingest.Batch{Bytes: bytes}, Idempotency: idempotency,
	}
}

// The quota keeps a request that is or may be in the log, and releases
// one that can't be whole.
func TestAcceptSettles(t *testing.T) {
	down := errors.New("no broker")
	for _, test := range []struct {
		name      string
		publisher answering
		more      ingest.Verdict // for 20 bytes more, of 100, after a request of 90
	}{
		{"in the log", answering{outcome: ingest.Outcome{Status: ingest.Published, Offset: 1}}, ingest.Exhausted},
		{"perhaps", answering{outcome: ingest.Outcome{Status: ingest.Uncertain}, err: down}, ingest.Contended},
		{"not whole", answering{err: down}, ingest.Admitted},
	} {
		s := newService(test.publisher)
		if _, err := s.Accept(t.Context(), submission(90, "")); errors.Is(err, intake.ErrNotPublished) != (test.publisher.err != nil) {
			t.Fatalf("%s: got %v", test.name, err)
		}
		if _, reserved := s.Gate.Try(identity.Principal{Organization: "org"}, start, 20); reserved.Verdict != test.more {
			t.Errorf("%s: %v, want %v", test.name, reserved.Verdict, test.more)
		}
	}
}

// published is a publisher that remembers what it was given.
type published struct{ last ingest.Acceptance }

func (p *published) Publish(_ context.Context, accepted ingest.Acceptance) (ingest.Outcome, error) {
	p.last = accepted
	return ingest.Outcome{Status: ingest.Published}, nil
}

// A batch has the retention of its account at acceptance; a changed
// account applies to later ones.
func TestAcceptStampsRetention(t *testing.T) {
	log := &published{}
	s := newService(log)
	for i, days := range []int{7, 90} {
		s.Gate.Apply("org", 100, ingest.Account{Period: calendar.PeriodAt(start, 1), Limit: 100, RetentionDays: days, Version: int64(2 + i)})
		if _, err := s.Accept(t.Context(), submission(1, "")); err != nil || log.last.RetentionDays != days {
			t.Errorf("%v, to be kept for %d days, want %d", err, log.last.RetentionDays, days)
		}
	}
}

// A batch with an idempotency key is accepted once; a failed one may be
// sent again.
func TestAcceptOnce(t *testing.T) {
	failing := newService(answering{err: errors.New("no broker")})
	for range 2 {
		if _, err := failing.Accept(t.Context(), submission(10, "k")); !errors.Is(err, intake.ErrNotPublished) {
			t.Errorf("without a broker: %v", err)
		}
	}
	s := newService(answering{outcome: ingest.Outcome{Status: ingest.Published}})
	for i := range 2 {
		got, err := s.Accept(t.Context(), submission(10, "k"))
		if err != nil || got.Bytes != 10 || got.Replayed != (i > 0) {
			t.Errorf("request %d: %+v, %v", i, got, err)
		}
	}
	other := submission(10, "k")
	other.Digest[0] = 1
	if _, err := s.Accept(t.Context(), other); !errors.Is(err, intake.ErrKeyReused) {
		t.Errorf("another body: %v", err)
	}
	var refused *intake.Refusal
	for bytes, want := range map[int64]ingest.Verdict{91: ingest.Contended, 101: ingest.Exhausted} {
		if _, err := s.Accept(t.Context(), submission(bytes, "l")); !errors.As(err, &refused) || refused.Verdict != want || refused.Quota.Used != 10 {
			t.Errorf("%d bytes after 10 that may be a repeat: %v", bytes, err)
		}
	}
}

// Rules apply before the quota is reserved: what they drop costs nothing, and
// is published only where it has a charge, or a key that it uses.
func TestAcceptAppliesRules(t *testing.T) {
	for _, test := range []struct {
		rules, idempotency string
		bytes              int64
		parts              int
	}{
		{"", "", 94, 1},
		{"drop level:info", "", 0, 0},
		{"drop level:info", "k", 0, 1},
		{"drop level:info after the charge", "", 94, 1},
		{"redact /m{5}/", "", 92, 1},
	} {
		log := &published{}
		s := newService(log)
		s.Rules = rules.NewBook(prometheus.NewRegistry(), s.Clock)
		testenv.Must(t, s.Rules.Set("prj", 1, test.rules))
		body := []byte(`{"logs":[{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"mmmmm","metadata":{"a":1234567}}]}`)
		batch, err := ingest.NewParser(ingest.DefaultLimits()).Parse(body)
		testenv.Must(t, err)
		sent := submission(0, test.idempotency)
		sent.Batch = batch
		if redacts := s.Rules.Redacts("prj"); redacts != strings.HasPrefix(test.rules, "redact") || s.Rules.Redacts("other") {
			t.Errorf("%q redacts: %t", test.rules, redacts)
		}
		receipt, err := s.Accept(t.Context(), sent)
		if err != nil || receipt.Bytes != test.bytes || len(log.last.Parts) != test.parts || batch.Valid() != 1 || receipt.Quota.Used != test.bytes {
			t.Errorf("%q: %+v in %d parts, %d valid: %v", test.rules, receipt, len(log.last.Parts), batch.Valid(), err)
		}
	}
	s := newService(&published{})
	s.Rules = rules.NewBook(prometheus.NewRegistry(), s.Clock)
	if err := s.Rules.Set("prj", 1, "teleport"); !errors.Is(err, rules.ErrUnreadable) {
		t.Errorf("unreadable rules: %v", err)
	}
	if _, err := s.Accept(t.Context(), submission(1, "")); !errors.Is(err, rules.ErrUnreadable) {
		t.Errorf("an entry beside unreadable rules: %v", err)
	}
	testenv.Must(t, s.Rules.Set("prj", 2, ""))
	if err := s.Rules.Set("prj", 1, "teleport"); err == nil {
		t.Error("rules became readable")
	}
	if _, err := s.Accept(t.Context(), submission(1, "")); err != nil {
		t.Errorf("after readable rules, older ones count: %v", err)
	}
}

// A request of which rules take too long is refused, and what they took is
// charged.
func TestSlowRulesAreRefused(t *testing.T) {
	log := &published{}
	s := newService(log)
	now := start
	s.Rules = rules.NewBook(prometheus.NewRegistry(), func() time.Time {
		now = now.Add(4 * time.Second)
		return now
	})
	testenv.Must(t, s.Rules.Set("prj", 1, "redact email"))
	const entry = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"m"}`
	batch, err := ingest.NewParser(ingest.DefaultLimits()).Parse([]byte(`{"logs":[` + strings.Repeat(entry+",", 20) + entry + `]}`))
	testenv.Must(t, err)
	sent := submission(0, "")
	sent.Batch = batch
	if _, err := s.Accept(t.Context(), sent); !errors.Is(err, rules.ErrSlow) || sent.Ruled != 12*time.Second || log.last.Batch != "" {
		t.Errorf("%v after %s, published %q", err, sent.Ruled, log.last.Batch)
	}
}
