package searches

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of the queue, and of the wait for memory after it.
const (
	maxWaitingOfOne = 32
	maxWaiting      = 2048
	longestWait     = 10 * time.Second
	longestForBytes = 5 * time.Second
)

// share is how many times an organization's answers must fit into the free
// memory besides. One alone gets a fifth of all; the next finds a fifth of
// the rest.
const share = 4

// maxEntry is how much memory the largest entry can take.
var maxEntry = int64(ingest.DefaultLimits().Entry)

// leastRoom is the memory of the smallest page.
var leastRoom = 2 * maxEntry

// Config is what searches work with.
type Config struct {
	Store interface {
		Search(ctx context.Context, organization pg.Organization, search ingest.Search) (ingest.Result, error)
		Count(ctx context.Context, organization pg.Organization, count ingest.Count, top int) (ingest.Counted, error)
	}
	Concurrency int   // searches at work, at least 1; one organization has at most half of them, rounded up
	AnswerBytes int64 // of all answers that are looked for or sent
	Metrics     prometheus.Registerer
}

// Searches is safe for concurrent use.
type Searches struct {
	config  Config
	limiter *httpapi.Limiter
	answers *fairshare.Limiter // of bytes
}

// New makes searches.
func New(config Config) *Searches {
	s := &Searches{
		config: config,
		limiter: httpapi.NewLimiter(httpapi.LimiterConfig{
			Slots: config.Concurrency, Waiting: maxWaitingOfOne, Queue: maxWaiting, Wait: longestWait, Module: "weir_ingest", Noun: "searches",
			Reasons: []string{reasonAnswers},
		}, config.Metrics),
		answers: fairshare.NewLimiter(fairshare.Limits{Capacity: config.AnswerBytes, Share: share, Wait: longestForBytes}),
	}
	metrics := promauto.With(config.Metrics)
	metrics.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_ingest_answer_bytes", Help: "Memory of the answers that are looked for or sent.",
	}, func() float64 { return float64(s.answers.Held()) })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_ingest_answers_cut_total", Help: "Answers that were ended before they were read whole, because another organization needed their memory.",
	}, func() float64 { return float64(s.answers.Evictions()) })
	return s
}

// reasonAnswers is why a search is refused whose organization's answers
// hold their share.
const reasonAnswers = "answers"

// An Answer is a page and the memory that it holds until it is closed.
type Answer struct {
	ingest.Result
	lease *fairshare.Lease
}

// AllowEviction lets the memory be taken back for an organization
// without any: stop makes the sending fail. It is called at most once,
// never after Close, and must not block.
func (a *Answer) AllowEviction(stop func()) {
	if a.lease != nil {
		a.lease.AllowEviction(stop)
	}
}

// Close returns the memory once the page is sent. It may be called again.
func (a *Answer) Close() {
	if a.lease != nil {
		a.lease.Release()
	}
}

// Page finds a page in the fair order of organizations. A Problem 429
// means that its share is used up. The page may be shorter while memory is short.
func (s *Searches) Page(ctx context.Context, organization string, search ingest.Search) (*Answer, error) {
	release, err := s.limiter.Acquire(ctx, organization)
	if err != nil {
		return nil, err
	}
	defer release()
	lease, err := s.lend(ctx, organization, leastRoom)
	if err != nil {
		return nil, err
	}
	search.MaxBytes = int(lease.Extend(roomFor(&search)-leastRoom) - maxEntry) // a page looks one entry ahead
	result, err := s.config.Store.Search(ctx, pg.Organization(organization), search)
	if err != nil {
		lease.Release()
		return nil, err
	}
	lease.Shrink(sizeOf(result.Found))
	return &Answer{Result: result, lease: lease}, nil
}

// Count counts in the fair order of organizations. A Problem 429 means
// that its share is used up.
func (s *Searches) Count(ctx context.Context, organization string, count ingest.Count, top int) (ingest.Counted, error) {
	release, err := s.limiter.Acquire(ctx, organization)
	if err != nil {
		return ingest.Counted{}, err
	}
	defer release()
	lease, err := s.lend(ctx, organization, min(count.Room(), s.config.AnswerBytes/(share+1)))
	if err != nil {
		return ingest.Counted{}, err
	}
	defer lease.Release()
	return s.config.Store.Count(ctx, pg.Organization(organization), count, top)
}

// lend lends memory for an answer.
func (s *Searches) lend(ctx context.Context, organization string, bytes int64) (*fairshare.Lease, error) {
	lease, err := s.answers.Acquire(ctx, organization, bytes)
	switch {
	case errors.Is(err, fairshare.ErrTooMany):
		return nil, s.limiter.Refuse(reasonAnswers,
			"Too many answers of your organization are not read to their end. Read them faster, or ask for fewer at once.")
	case errors.Is(err, fairshare.ErrFull):
		return nil, s.limiter.RefuseLate()
	}
	return lease, err
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

// ErrNoProject means that there is no such project that the caller can read.
var ErrNoProject = errors.New("there is no such project")

// A Finder finds and counts an organization's entries.
type Finder interface {
	Page(ctx context.Context, organization string, search ingest.Search) (*Answer, error)
	Count(ctx context.Context, organization string, count ingest.Count, top int) (ingest.Counted, error)
}

// A Service keeps each search to what its caller may read.
type Service struct {
	Directory *identity.Directory
	Searches  Finder
}

// Search finds a page of what the caller may read: entries of a project of its
// organization, or of its key's own project.
func (s *Service) Search(ctx context.Context, who identity.Principal, search ingest.Search) (*Answer, error) {
	if err := s.keepTo(who, &search); err != nil {
		return nil, err
	}
	return s.Searches.Page(ctx, who.Organization, search)
}

// Count counts what the caller may read, with the top values of each field.
func (s *Service) Count(ctx context.Context, who identity.Principal, count ingest.Count, top int) (ingest.Counted, error) {
	if err := s.keepTo(who, &count.Search); err != nil {
		return ingest.Counted{}, err
	}
	return s.Searches.Count(ctx, who.Organization, count, top)
}

// keepTo keeps a search to what the caller may read.
func (s *Service) keepTo(who identity.Principal, search *ingest.Search) (err error) {
	search.Hidden = s.Directory.Hidden(who.Organization)
	search.Project, err = s.Readable(who, search.Project)
	return err
}

// Readable is the project that a search is kept to; empty: to none.
func (s *Service) Readable(who identity.Principal, project string) (string, error) {
	if project == "" {
		if own, alone := who.OnlyProject(); alone {
			return own, nil
		}
		return "", nil
	}
	if !s.Directory.Owns(who.Organization, project) || !who.ReadsProject(project) {
		return "", ErrNoProject
	}
	return project, nil
}
