package tails

import (
	"sync"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/fairshare"
)

// maxBuffered is how many bytes wait for a viewer, unless it is one entry.
const maxBuffered = 512 << 10

// perEntry is what an entry costs beside its text.
const perEntry = 256

func sizeOf(found *ingest.Found) int { return len(found.Text) + perEntry }

// A Viewer gets entries of one organization. One goroutine reads it.
type Viewer struct {
	hub          *Hub
	organization string
	group        *group
	lease        *fairshare.Lease
	most         int // entries that wait; 0: no limit
	ready        chan struct{}
	evicted      chan struct{}

	mu      sync.Mutex
	waiting []*ingest.Found
	bytes   int // of waiting, and of what is being written
	skipped []Skipped
}

// Skipped is how many entries a viewer did not get, and why: it is too slow,
// or they were not compared, as its organization has had its share.
type Skipped struct {
	Reason  string
	Entries int
}

func newViewer(h *Hub, organization string, lease *fairshare.Lease, most int) *Viewer {
	return &Viewer{hub: h, organization: organization, lease: lease, most: most, ready: make(chan struct{}, 1), evicted: make(chan struct{})}
}

// Ready gets a value when there is something to Take.
func (v *Viewer) Ready() <-chan struct{} { return v.ready }

// Evicted is closed when another organization needs the viewer's place.
func (v *Viewer) Evicted() <-chan struct{} { return v.evicted }

// Close ends the viewer. It may be called once.
func (v *Viewer) Close() {
	v.hub.leave(v)
	v.lease.Release()
}

// Take passes the entries that have come to write, one after the other, and
// takes their room until they are written.
func (v *Viewer) Take(write func(*ingest.Found) error) error {
	v.mu.Lock()
	taken, bytes := v.waiting, v.bytes
	v.waiting = nil
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.bytes -= bytes
	}()
	for _, found := range taken {
		if err := write(found); err != nil {
			return err
		}
	}
	return nil
}

// Skipped returns what was skipped since the last call.
func (v *Viewer) Skipped() []Skipped {
	v.mu.Lock()
	defer v.mu.Unlock()
	skipped := v.skipped
	v.skipped = nil
	return skipped
}

func (v *Viewer) push(found *ingest.Found) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bytes > 0 && v.bytes+sizeOf(found) > maxBuffered || v.most > 0 && len(v.waiting) >= v.most {
		v.count(skippedSlow, 1)
		return
	}
	v.waiting, v.bytes = append(v.waiting, found), v.bytes+sizeOf(found)
	select {
	case v.ready <- struct{}{}:
	default:
	}
}

func (v *Viewer) skip(reason string, entries int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count(reason, entries)
}

// count counts skipped entries. The caller holds the lock.
func (v *Viewer) count(reason string, entries int) {
	v.hub.skipped.WithLabelValues(reason).Add(float64(entries))
	for i := range v.skipped {
		if v.skipped[i].Reason == reason {
			v.skipped[i].Entries += entries
			return
		}
	}
	v.skipped = append(v.skipped, Skipped{reason, entries})
}
