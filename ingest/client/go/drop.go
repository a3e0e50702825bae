package weir

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A Reason says why entries were dropped.
type Reason string

const (
	QueueFull     Reason = "queue_full"     // they came faster than they could be sent
	TooLarge      Reason = "too_large"      // larger than 512 KB, or than the queue
	Rejected      Reason = "rejected"       // Weir says that they are invalid
	QuotaExceeded Reason = "quota_exceeded" // the quota did not cover them until Limits.GiveUpAfter
	Expired       Reason = "expired"        // not accepted within Limits.GiveUpAfter
	Unauthorized  Reason = "unauthorized"   // Weir refuses the API key
	Closed        Reason = "closed"         // logged after Close, or not sent before its context was done
	SpoolFailed   Reason = "spool_failed"   // the spool could not be read
)

// A Drop is entries that were dropped.
type Drop struct {
	Reason  Reason
	Entries int
	// Of a single entry that Weir rejected: its index in its batch, and what
	// Weir says.
	Index             int
	Code, Detail, Fix string
}

func (d Drop) String() string {
	text := fmt.Sprintf("weir: dropped %d entries: %s", d.Entries, strings.ReplaceAll(string(d.Reason), "_", " "))
	if d.Code != "" {
		text += fmt.Sprintf(" (entry %d: %s: %s %s)", d.Index, d.Code, d.Detail, d.Fix)
	}
	return text
}

// Stats say what became of the entries since the start, those that an earlier
// process left in the spool included.
type Stats struct {
	Accepted uint64            // by Weir
	Dropped  map[Reason]uint64 // for good
	Waiting  int               // in memory and in the spool
}

// reasons are all, in the order in which they are told.
var reasons = [...]Reason{QueueFull, TooLarge, Rejected, QuotaExceeded, Expired, Unauthorized, Closed, SpoolFailed}

type counts [len(reasons)]uint64

func (c *counts) add(reason Reason, n int) {
	for i := range reasons {
		if reasons[i] == reason {
			c[i] += uint64(n)
		}
	}
}

// less returns what c has more than other.
func (c counts) less(other counts) counts {
	for i := range c {
		c[i] -= other[i]
	}
	return c
}

func (c counts) plus(other counts) counts {
	for i := range c {
		c[i] += other[i]
	}
	return c
}

// losses count what was dropped, and who has been told.
type losses struct {
	mu      sync.Mutex
	all     counts
	told    counts // to OnDrop
	noticed counts // to Weir, by an entry on its way
	arrived counts // by an entry that Weir has

	calling sync.Mutex // one callback at a time
	onDrop  func(Drop)
}

func (l *losses) add(reason Reason, n int) {
	if n > 0 {
		l.mu.Lock()
		l.all.add(reason, n)
		l.mu.Unlock()
	}
}

// addRejected counts an entry and tells what Weir says of it.
func (l *losses) addRejected(d Drop) {
	l.mu.Lock()
	l.all.add(d.Reason, d.Entries)
	l.told.add(d.Reason, d.Entries)
	l.mu.Unlock()
	l.call(d)
}

func (l *losses) call(d Drop) {
	if l.onDrop != nil {
		l.calling.Lock()
		defer l.calling.Unlock()
		l.onDrop(d)
	}
}

// between calls f when no other callback runs.
func (l *losses) between(f func(error)) func(error) {
	return func(err error) {
		l.calling.Lock()
		defer l.calling.Unlock()
		f(err)
	}
}

// tell calls OnDrop with what it has not been told.
func (l *losses) tell() {
	l.mu.Lock()
	untold := l.all.less(l.told)
	l.told = l.all
	l.mu.Unlock()
	for i, n := range untold {
		if n > 0 {
			l.call(Drop{Reason: reasons[i], Entries: int(n)})
		}
	}
}

// notice returns an entry about what was dropped since the last, and what it
// says; nil if there is nothing to say.
func (l *losses) notice(now time.Time, tail string) ([]byte, counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := l.all.less(l.noticed)
	if fresh == (counts{}) {
		return nil, fresh
	}
	l.noticed = l.all
	var sum uint64
	var words, members []string
	for i, n := range fresh {
		if n > 0 {
			sum += n
			words = append(words, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(reasons[i]), "_", " ")))
			members = append(members, fmt.Sprintf("%q:%d", reasons[i], n))
		}
	}
	text := appendHead(nil, now, levelWarn, fmt.Sprintf("dropped %d entries: %s", sum, strings.Join(words, ", ")))
	text = append(text, `,"metadata":{"dropped_by_client":{`+strings.Join(members, ",")+`}}`...)
	return append(append(text, tail...), '}'), fresh
}

// unnotice takes back what a notice said that has not arrived.
func (l *losses) unnotice(said counts) {
	l.mu.Lock()
	l.noticed = l.noticed.less(said)
	l.mu.Unlock()
}

func (l *losses) arrive(said counts) {
	l.mu.Lock()
	l.arrived = l.arrived.plus(said)
	l.mu.Unlock()
}

// state says whether a notice has something to say, and whether Weir has all
// notices.
func (l *losses) state() (fresh, arrived bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all != l.noticed, l.all == l.arrived
}

func (l *losses) dropped() map[Reason]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped := map[Reason]uint64{}
	for i, n := range l.all {
		if n > 0 {
			dropped[reasons[i]] = n
		}
	}
	return dropped
}
