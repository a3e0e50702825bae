package searches

import "sync"

// share is how many times what an organization's answers hold has to be free beside it. One alone gets a fifth of all, and
// however many come, a fifth of what the others have left free is there for the next.
const share = 4

// Answers is the memory for answers from when they are looked for until they are sent, shared among organizations. It is
// safe for concurrent use.
type Answers struct {
	limit int64

	mu   sync.Mutex
	held int64
	by   map[string]int64
}

// NewAnswers makes a budget of limit bytes.
func NewAnswers(limit int64) *Answers { return &Answers{limit: limit, by: map[string]int64{}} }

// Take lends key as many bytes of want as its share has; none where that is less than least.
func (a *Answers) Take(key string, least, want int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	got := min(want, (a.limit-a.held-share*a.by[key])/(share+1))
	if got < least {
		return 0
	}
	a.add(key, got)
	return got
}

// Give gives bytes back.
func (a *Answers) Give(key string, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(key, -bytes)
}

func (a *Answers) add(key string, bytes int64) {
	a.held += bytes
	a.by[key] += bytes
	if a.by[key] == 0 {
		delete(a.by, key)
	}
}

// Held is how many bytes are lent.
func (a *Answers) Held() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}
