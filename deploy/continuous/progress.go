package continuous

import (
	"path/filepath"
	"sync"
	"time"
)

// A mark is a position of the log at a time of the server's clock.
type mark struct {
	at  time.Time
	lsn LSN
}

// progress is what is received, and how far.
type progress struct {
	mu       sync.Mutex
	facts    facts    // of the server, once it was reached
	stretch  string   // that is being received
	archived Archived // how far it is
	pending  mark     // the next to reach
}

// begin notes the stretch that is received.
func (p *progress) begin(f facts, stretch string, in Folder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stretch != p.stretch {
		p.archived = Archived{}
		_ = read(filepath.Join(in.stretch(stretch), archivedFile), &p.archived) // a new one has none
	}
	p.facts, p.stretch, p.pending = f, stretch, mark{}
}

// reach notes how far the stretch is, and reports whether it is further than before.
func (p *progress) reach(now mark, here slot) (stretch string, archived Archived, further bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stretch == "" || !here.Exists || here.Lost {
		return "", Archived{}, false
	}
	if p.pending.at.IsZero() {
		p.pending = now
	}
	if here.Restart+headerBytes < p.pending.lsn {
		return "", Archived{}, false
	}
	p.archived = Archived{System: p.facts.System, At: p.pending.at.UTC(), LSN: p.pending.lsn}
	p.pending = now
	return p.stretch, p.archived, true
}

// now returns what is received, and how far.
func (p *progress) now() (f facts, stretch string, archived Archived) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.facts, p.stretch, p.archived
}
