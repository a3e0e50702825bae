package fairness

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// An outcome counts a noisy tenant's answers, such as "200", "429
// overloaded", "200 incomplete" or "closed". Safe for concurrent use.
type outcome struct {
	mu    sync.Mutex
	Times map[string]int64 `json:"times"`
}

func (o *outcome) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Times == nil {
		o.Times = map[string]int64{}
	}
	o.Times[what]++
}

// headBytes is how much of an answer is kept to find its code.
const headBytes = 4 << 10

// read counts an answer and reads it to its end, keeping only its
// beginning and end.
func (o *outcome) read(answer *http.Response) {
	defer answer.Body.Close()
	head, _ := io.ReadAll(io.LimitReader(answer.Body, headBytes))
	tail := lastBytes{}
	_, _ = io.Copy(&tail, answer.Body)
	o.count(describe(answer.StatusCode, head, tail.kept))
}

// describe names an answer's kind.
func describe(status int, head, tail []byte) string {
	what := fmt.Sprint(status)
	var problem struct{ Code string }
	if status >= http.StatusBadRequest && json.Unmarshal(head, &problem) == nil && problem.Code != "" {
		return what + " " + problem.Code
	}
	if incomplete := []byte(`"incomplete":true`); bytes.Contains(head, incomplete) || bytes.Contains(tail, incomplete) {
		return what + " incomplete"
	}
	return what
}

// lastBytes keeps the last bytes written to it.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-headBytes):]...)
	l.kept = l.kept[max(0, len(l.kept)-headBytes):]
	return len(p), nil
}

// refused reports whether the noisy tenant was ever asked to slow down or stop.
func (o *outcome) refused() bool {
	for what := range o.Times {
		if strings.HasPrefix(what, "429") || strings.HasSuffix(what, "incomplete") || what == "closed" {
			return true
		}
	}
	return false
}

// String lists the answers, most frequent first.
func (o *outcome) String() string {
	kinds := make([]string, 0, len(o.Times))
	for what := range o.Times {
		kinds = append(kinds, what)
	}
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(o.Times[b], o.Times[a]), cmp.Compare(a, b)) })
	for i, what := range kinds {
		kinds[i] = fmt.Sprintf("%d × %s", o.Times[what], what)
	}
	return strings.Join(kinds, ", ")
}
