package status

import "sync"

// A Log is what is known of a log that positions lie in. Safe for
// concurrent use.
type Log struct {
	mu       sync.Mutex
	compared bool  // positions were compared with it
	err      error // why they don't lie in it; nil: they do
}

// Intact returns the error of Consumer.LogIntact.
func (l *Log) Intact() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Compared notes the result of comparing all positions of the group
// with the log. It reports whether that is damage not known before.
func (l *Log) Compared(result error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = result != nil && (l.err == nil || l.err.Error() != result.Error())
	l.compared, l.err = true, result
	return news
}

// NotCompared notes a first comparison that failed: nil trusts the log.
// After a first result it changes nothing.
func (l *Log) NotCompared(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.compared {
		l.err = why
	}
}
