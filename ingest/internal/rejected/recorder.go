package rejected

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of what is gathered between two times that it is saved. Each
// organization has a little, however much others have.
const (
	maxCounters = 1 << 12 // keys with a code, of all organizations
	maxOfOne    = 1 << 7
	fewOfOne    = 4

	maxBytes  = 4 << 20 // of samples
	bytesOne  = 64 << 10
	bytesFew  = 4 << 10
	samples   = 3   // of a key and code; beyond the first while there is half of its organization's room
	sampleFee = 256 // of a sample, besides its texts
)

const (
	defaultInterval = 3 * time.Second
	saveTimeout     = 10 * time.Second
	finishTimeout   = 2 * time.Second
)

// Config configures a Recorder.
type Config struct {
	Redacts  func(project string) bool // by its rules: then no samples of it are kept; nil: none does
	Pool     *pgxpool.Pool
	Interval time.Duration // between two times that it saves; 0: 3 seconds
	Clock    func() time.Time
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
}

// A Recorder gathers rejections and saves them. It is safe for concurrent use. A
// nil *Recorder records nothing.
type Recorder struct {
	Config
	lost    *prometheus.CounterVec
	pending []ingest.Rejected // that could not be saved yet; of the goroutine that saves

	mu            sync.Mutex
	counters      int
	bytes         int
	organizations map[string]*organization // bounded by the organizations of which something was rejected since it was saved
}

// An organization has what is gathered of one.
type organization struct {
	rejected map[sender]*ingest.Rejected // bounded by maxOfOne
	bytes    int
}

// A sender sends what is rejected for a reason.
type sender struct {
	project, key string
	code         ingest.Code
}

// NewRecorder makes a Recorder.
func NewRecorder(config Config) *Recorder {
	config.Interval = cmp.Or(config.Interval, defaultInterval)
	lost := promauto.With(config.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_ingest_rejections_lost_total",
		Help: "Rejected entries that are missing among those of the last day: of too many keys at once (full), or that could not be saved (unsaved).",
	}, []string{"reason"})
	for _, reason := range []string{"full", "unsaved"} {
		lost.WithLabelValues(reason)
	}
	return &Recorder{Config: config, lost: lost, organizations: map[string]*organization{}}
}

// Note records what was rejected. It copies the samples that it keeps.
func (r *Recorder) Note(who identity.Principal, rejections ...ingest.Rejection) {
	if r == nil || len(rejections) == 0 {
		return
	}
	at := r.Clock().UTC()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.organizations[who.Organization]
	if o == nil {
		o = &organization{rejected: map[sender]*ingest.Rejected{}}
		r.organizations[who.Organization] = o
	}
	bare := r.Redacts != nil && r.Redacts(who.Project)
	for _, rejection := range rejections {
		if bare {
			rejection.Samples = nil
		}
		r.note(o, who, &rejection, at)
	}
}

func (r *Recorder) note(o *organization, who identity.Principal, rejection *ingest.Rejection, at time.Time) {
	from := sender{who.Project, who.ID, rejection.Code}
	counted := o.rejected[from]
	if counted == nil {
		if len(o.rejected) >= maxOfOne || r.counters >= maxCounters && len(o.rejected) >= fewOfOne {
			r.lost.WithLabelValues("full").Add(float64(rejection.Entries))
			return
		}
		r.counters++
		counted = &ingest.Rejected{Organization: who.Organization, Project: who.Project, Key: who.ID, Code: rejection.Code}
		o.rejected[from] = counted
	}
	counted.Entries += rejection.Entries
	counted.LastAt = at
	for i := range rejection.Samples {
		if len(counted.Samples) == samples {
			return
		}
		r.sample(o, counted, &rejection.Samples[i])
	}
}

func (r *Recorder) sample(o *organization, of *ingest.Rejected, sample *ingest.Sample) {
	size := sampleFee + len(sample.Pointer) + len(sample.Detail) + len(sample.Fix) + min(len(sample.Text), ingest.SampleBytes)
	room := bytesOne
	if len(of.Samples) > 0 {
		room /= 2
	}
	if r.bytes+size > maxBytes {
		room = bytesFew
	}
	if o.bytes+size > room {
		return
	}
	o.bytes += size
	r.bytes += size
	of.Samples = append(of.Samples, sample.Kept(of.LastAt))
}

// take empties the Recorder, in the order in which all replicas save.
func (r *Recorder) take() (taken []ingest.Rejected) {
	r.mu.Lock()
	organizations := r.organizations
	r.organizations, r.counters, r.bytes = map[string]*organization{}, 0, 0
	r.mu.Unlock()
	for _, o := range organizations {
		for _, rejected := range o.rejected {
			taken = append(taken, *rejected)
		}
	}
	slices.SortFunc(taken, func(a, b ingest.Rejected) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Code, b.Code))
	})
	return taken
}

// Run saves until ctx ends. Finish saves the rest.
func (r *Recorder) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, r.Interval, r.Save, lifecycle.Warn(r.Logger, "cannot save what was rejected"))
}

// Finish saves what was rejected last, once no request is under way: what a
// Save has left, and what came since.
func (r *Recorder) Finish() {
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	err := r.Save(ctx)
	if err == nil {
		err = r.Save(ctx)
	}
	if err != nil {
		r.pending = append(r.pending, r.take()...)
		r.lose()
		r.Logger.Warn("what was rejected last is not saved", slog.String("error", err.Error()))
	}
}

// lose counts what is pending as lost.
func (r *Recorder) lose() {
	for i := range r.pending {
		r.lost.WithLabelValues("unsaved").Add(float64(r.pending[i].Entries))
	}
	r.pending = nil
}

// Save saves what was gathered. While the database is away, it keeps that, and
// what is gathered meanwhile has its bounds.
func (r *Recorder) Save(ctx context.Context) error {
	if len(r.pending) == 0 {
		r.pending = r.take()
	}
	if len(r.pending) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	err := pg.InTxAsSystem(ctx, r.Pool, func(tx pgx.Tx) error { return postgres.SaveRejected(ctx, tx, r.pending) })
	if err != nil && !pg.IsData(err) {
		return err
	}
	if err != nil {
		r.lose()
	}
	r.pending = nil
	return err
}
