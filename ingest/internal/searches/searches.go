package searches

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/fair"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of the queue.
const (
	maxWaitingOfOne = 32
	maxWaiting      = 2048
	longestWait     = 10 * time.Second
	retryAfter      = 2 * time.Second // after a refusal
)

// maxEntry is how much memory the largest entry can take.
var maxEntry = int64(ingest.DefaultLimits().Entry)

// Config is what searches work with.
type Config struct {
	Store interface {
		Search(ctx context.Context, organization pg.Organization, search ingest.Search) (ingest.Result, error)
	}
	Concurrency int   // searches at work, at least 1; one organization has at most half of them, rounded up
	AnswerBytes int64 // of all answers that are looked for or sent
	Metrics     prometheus.Registerer
}

// Searches is safe for concurrent use.
type Searches struct {
	config  Config
	queue   *fair.Queue
	answers *answers
	refused *prometheus.CounterVec
}

// New makes searches.
func New(config Config) *Searches {
	s := &Searches{
		config: config, answers: newAnswers(config.AnswerBytes),
		queue: fair.NewQueue(fair.Limits{Slots: config.Concurrency, PerKey: (config.Concurrency + 1) / 2, Waiting: maxWaitingOfOne, Queued: maxWaiting}),
	}
	s.measure(promauto.With(config.Metrics))
	return s
}

func (s *Searches) measure(metrics promauto.Factory) {
	gauge := func(name, help string, value func() float64) {
		metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	gauge("weir_ingest_searches_running", "Searches at work.", func() float64 { return float64(s.queue.Held()) })
	gauge("weir_ingest_searches_waiting", "Searches that wait for their turn.", func() float64 { return float64(s.Waiting()) })
	gauge("weir_ingest_answer_bytes", "Memory of the answers that are looked for or sent.", func() float64 { return float64(s.answers.lent()) })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_ingest_answers_cut_total", Help: "Answers that were ended before they were read whole, because another organization needed their memory.",
	}, func() float64 { return float64(s.answers.stoppedReaders()) })
	s.refused = metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_ingest_searches_refused_total", Help: "Searches that were refused because their organization had its share.",
	}, []string{"reason"})
	for _, reason := range []string{reasonLine, reasonWait, reasonAnswers} {
		s.refused.WithLabelValues(reason)
	}
}

// Why a search is refused.
const (
	reasonLine    = "line"
	reasonWait    = "wait"
	reasonAnswers = "answers"
)

// An Answer is a page and the memory that it holds until it is closed.
type Answer struct {
	ingest.Result
	lease *lease
}

// AllowEviction lets the memory be taken back for an organization
// without any: stop makes the sending fail. It is called at most once,
// never after Close, and must not block.
func (a *Answer) AllowEviction(stop func()) {
	if a.lease != nil {
		a.lease.allowEviction(stop)
	}
}

// Close returns the memory once the page is sent. It may be called again.
func (a *Answer) Close() {
	if a.lease != nil {
		a.lease.close()
		a.lease = nil
	}
}

// Waiting is how many searches are queued.
func (s *Searches) Waiting() int { return s.queue.Queued() }

// Page finds a page in the fair order of organizations. A Problem 429
// means that its share is used up. The page may be shorter while memory is short.
func (s *Searches) Page(ctx context.Context, organization string, search ingest.Search) (*Answer, error) {
	waiting, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	leave, err := s.queue.Acquire(waiting, organization)
	if err != nil {
		return nil, s.refusal(ctx, err)
	}
	defer leave()
	lease, err := s.answers.take(waiting, organization, 2*maxEntry, roomFor(&search))
	if err != nil {
		return nil, s.refusal(ctx, err)
	}
	search.MaxBytes = int(lease.bytes - maxEntry) // a page looks one entry ahead
	result, err := s.config.Store.Search(ctx, pg.Organization(organization), search)
	if err != nil {
		lease.close()
		return nil, err
	}
	lease.shrink(sizeOf(result.Found))
	return &Answer{Result: result, lease: lease}, nil
}

// roomFor is how much memory a search may need.
func roomFor(search *ingest.Search) int64 {
	most := int64(search.MaxBytes)
	if most == 0 {
		most = ingest.MaxPageBytes
	}
	return min(most, int64(search.Limit)*maxEntry) + maxEntry
}

// sizeOf returns the memory of entries, with their texts.
func sizeOf(found []ingest.Found) (size int64) {
	const aside = 256
	for i := range found {
		size += int64(len(found[i].Text)) + aside
	}
	return size
}

// refusal returns the answer to a search that does not begin; ctx is
// the request's.
func (s *Searches) refusal(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, fair.ErrFull):
		return s.refuse(reasonLine, "Too many searches of your organization wait for their turn. Send fewer at once.")
	case errors.Is(err, errShareUsed):
		return s.refuse(reasonAnswers, "Too many answers of your organization are not read to their end. Read them faster, or ask for fewer at once.")
	case ctx.Err() == nil:
		return s.refuse(reasonWait, "The searches before yours take too long. Try again.")
	}
	return err
}

func (s *Searches) refuse(reason, detail string) error {
	s.refused.WithLabelValues(reason).Inc()
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(retryAfter)
}
