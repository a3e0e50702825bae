package ingest

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// published is a request in the log that the ledger counts only
// with its last record.
type published struct {
	at         time.Time // when it was accepted: the ledger counts it in the period of that time
	oldest     time.Time // oldest acceptance merged into it
	partition  int
	offset     int64
	bytes      int64
	repeatable bool // the ledger may have charged it already
}

func (p published) countedBy(l *ledger) bool {
	return l.counts(p.at, func(counted Positions) bool { return counted.Covers(p.partition, p.offset) })
}

// spent are bytes in the log.
type spent struct {
	all        int64
	repeatable int64 // of these, what the ledger may have charged already
}

func (s *spent) add(p published) {
	s.all += p.bytes
	if p.repeatable {
		s.repeatable += p.bytes
	}
}

// sure are bytes that the ledger will charge.
func (s *spent) sure() int64 { return s.all - s.repeatable }

// A doubtful request may be in the log or not.
type doubtful struct {
	at     time.Time // latest acceptance
	oldest time.Time
	bytes  int64
	since  time.Time
	fence  Positions // the end of the log to check; nil: not read yet
}

// lostBefore reports whether it was lost before an instant, and is unresolved.
func (d doubtful) lostBefore(instant time.Time) bool {
	return d.fence == nil && d.since.Before(instant)
}

// resolvedBy reports whether the ledger has counted beyond it.
func (d doubtful) resolvedBy(l *ledger) bool {
	return d.fence != nil && l.counts(d.at, func(counted Positions) bool { return counted.reach(d.fence) })
}

// maxPublished bounds the published requests, and the doubtful ones,
// that are kept apart. Beyond it some are counted with a later
// one, which errs toward refusal.
const maxPublished = 1024

// uncounted are the requests that the ledger has not counted.
type uncounted struct {
	published []published
	doubtful  []doubtful
	oldest    time.Time // when the first of these was accepted; zero: there are none

	since    time.Time // start of a period, and
	counting spent     // what is published that was accepted since
}

// add adds a request that is in the log.
func (u *uncounted) add(found published) {
	if !found.at.Before(u.since) {
		u.counting.add(found)
	}
	u.age(found.at)
	found.oldest = found.at
	if len(u.published) < maxPublished || !u.merge(found) {
		u.published = append(u.published, found)
	}
}

// merge adds found to one of the same partition, period and charge.
func (u *uncounted) merge(found published) bool {
	for i := range u.published {
		p := &u.published[i]
		if p.partition == found.partition && p.repeatable == found.repeatable && p.at.Before(u.since) == found.at.Before(u.since) {
			if p.bytes += found.bytes; found.at.After(p.at) {
				p.at = found.at
			}
			if found.at.Before(p.oldest) {
				p.oldest = found.at
			}
			p.offset = max(p.offset, found.offset)
			return true
		}
	}
	return false
}

// doubt adds a request that may be in the log.
func (u *uncounted) doubt(lost doubtful) {
	u.age(lost.at)
	if len(u.doubtful) < maxPublished {
		u.doubtful = append(u.doubtful, lost)
		return
	}
	last := &u.doubtful[maxPublished-1] // resolved with the latest
	last.bytes += lost.bytes
	last.at, last.oldest = calendar.Later(last.at, lost.at), calendar.Earlier(last.oldest, lost.at)
	last.since, last.fence = lost.since, nil
}

// age records the acceptance of an uncounted request.
func (u *uncounted) age(accepted time.Time) {
	if u.oldest.IsZero() || accepted.Before(u.oldest) {
		u.oldest = accepted
	}
}

// spentIn returns the published bytes accepted in period or later.
func (u *uncounted) spentIn(period calendar.Period) *spent {
	if !period.Start.Equal(u.since) {
		u.since = period.Start
		u.addUp()
	}
	return &u.counting
}

func (u *uncounted) addUp() {
	u.counting = spent{}
	for _, p := range u.published {
		if !p.at.Before(u.since) {
			u.counting.add(p)
		}
	}
}

// settle drops what the ledger has counted, and returns the bytes of
// doubtful requests among it.
func (u *uncounted) settle(by *ledger) (resolved int64) {
	u.published = slices.DeleteFunc(u.published, func(p published) bool { return p.countedBy(by) })
	u.doubtful = slices.DeleteFunc(u.doubtful, func(d doubtful) bool {
		over := d.resolvedBy(by)
		if over {
			resolved += d.bytes
		}
		return over
	})
	u.addUp()
	u.findOldest()
	return resolved
}

func (u *uncounted) findOldest() {
	u.oldest = time.Time{}
	for _, p := range u.published {
		u.age(p.oldest)
	}
	for _, d := range u.doubtful {
		u.age(d.oldest)
	}
}
