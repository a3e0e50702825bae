package e2e

import (
	"fmt"
	"sync"
)

// A record of one post: the entries that must be stored if it was
// accepted. The promise: a post answered with 200 is stored whole. One
// of unknown outcome is stored or not, part by part, each part whole or
// not at all, since a part is one record of the log; a post of up to
// 900 KiB is a single part. Exactly what is stored is charged. Sent
// again with its idempotency key, it is stored whole and once.
type posted struct {
	name    string
	entries []sent // of a post; of one of its parts if the outcome is unknown
	known   bool   // surely accepted
}

// A history holds all posts to one organization. Safe for concurrent use.
type history struct {
	mu    sync.Mutex
	posts []posted
}

func (h *history) accepted(name string, entries []sent) {
	h.add(posted{name, entries, true})
}

// unknown notes a part of a post without an answer, or with one that
// leaves its outcome open.
func (h *history) unknown(name string, entries []sent) {
	h.add(posted{name, entries, false})
}

func (h *history) add(post posted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.posts = append(h.posts, post)
}

// totals sum up a history, given what is stored of it.
type totals struct {
	entries   int
	bytes     int64
	byKind    map[string]int64 // errors
	undecided int              // parts of posts of unknown outcome
	stored    int              // those of them that are stored
}

// check compares what is stored with what was posted: nothing foreign,
// nothing twice, every accepted post whole, and every part of any other
// whole or not at all.
func (h *history) check(stored []string) (totals, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	times := map[string]int{}
	for _, text := range stored {
		times[text]++
	}
	sum := totals{byKind: map[string]int64{}}
	for _, post := range h.posts {
		found := 0
		for _, entry := range post.entries {
			if times[entry.text] > 1 {
				return sum, fmt.Errorf("%s: stored %d times: %.200s", post.name, times[entry.text], entry.text)
			}
			found += times[entry.text]
			delete(times, entry.text)
		}
		if found != len(post.entries) && (post.known || found != 0) {
			return sum, fmt.Errorf("%s (known to be accepted: %t): %d of %d entries are stored", post.name, post.known, found, len(post.entries))
		}
		if !post.known {
			sum.undecided++
		}
		if found > 0 {
			sum.count(post)
		}
	}
	for text := range times {
		return sum, fmt.Errorf("%d entries are stored that nobody sent in this form, such as %.200s", len(times), text)
	}
	return sum, nil
}

func (s *totals) count(post posted) {
	if !post.known {
		s.stored++
	}
	s.entries += len(post.entries)
	for _, entry := range post.entries {
		s.bytes += int64(len(entry.text))
		if entry.kind != "" {
			s.byKind[entry.kind]++
		}
	}
}
