package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

// Bounds of a search for entries of a group.
const (
	mostPages    = 30      // of the log store
	mostSelected = 200     // entries of one question
	selectBytes  = 3 << 20 // of them, unless one alone has more; grouping reads 4 MiB
	answerBytes  = 8 << 20 // of the items of an answer, as of the log store's
)

// turns bound how many searches for entries are at work, each of which holds a few pages of the log store in memory, and
// how many of them are of one project.
var turns = fairshare.Limits{Capacity: 16, PerKey: 4, Leases: 20, Queue: 256, Wait: 2 * time.Second}

// An entrySelection finds those entries of a search that are of an error group.
type entrySelection struct {
	gateway   *Gateway
	reader    *http.Request // who asks
	group     string
	logs, sel string // the paths that are asked
	search    entrySearch
	cursor    string // where it goes on
	limit     int    // of items
	most      int    // bytes of them, unless one alone has more
	limits    http.Header
	answer    occurrencesAnswer
}

// entrySearch is a search of the log store, which finds all entries that are wanted, and others.
type entrySearch struct {
	Project string `json:"project"`
	Query   string `json:"q"`
	From    string `json:"from"`
	To      string `json:"to,omitempty"` // empty: there is no bound
}

func (s *entrySearch) query() url.Values {
	query := url.Values{"project": {s.Project}, "q": {s.Query}, "from": {s.From}}
	if s.To != "" {
		query.Set("to", s.To)
	}
	return query
}

// logsPage is a page of the log store.
type logsPage struct {
	Items []json.RawMessage `json:"items"`
	Next  *string           `json:"next_cursor"`
	items []readItem
}

// run reads one page of the log store after another until there are enough items, or the time is over. Where a
// page has more of them than fit, it is read again up to the last that does, so that the next one goes on
// behind it. It returns the answer of a module that refused before anything was read.
func (s *entrySelection) run(ctx context.Context) (refused *recorder) {
	s.answer.items = []json.RawMessage{}
	size, begun, from := s.limit, time.Now(), s.cursor
	for n, last := 0, false; n < mostPages && (last || time.Since(begun) < beginTime); n++ {
		page, selected, refused := s.step(ctx, size)
		if refused != nil && len(s.answer.items) == 0 && s.cursor == from {
			return refused
		}
		if page == nil {
			break
		}
		fit := s.take(page, selected)
		if last = last || fit < len(selected); fit < len(selected) && fit > 0 {
			size = selected[fit-1] + 1
			continue
		}
		if fit == len(selected) && page.Next == nil {
			return nil
		}
		if last || len(s.answer.items) == s.limit {
			s.answer.next = s.nextCursor()
			return nil
		}
		size = s.nextSize(size, len(page.items), len(selected))
	}
	s.answer.next, s.answer.incomplete = s.nextCursor(), true
	return nil
}

// find runs when it is its turn, and returns the answer; body is nil where a module refused.
func (s *entrySelection) find(ctx context.Context) (body []byte, refused *recorder, err error) {
	turn, err := s.gateway.turns.Acquire(ctx, s.search.Project, 1)
	if err != nil {
		return nil, nil, httpapi.NewProblem(http.StatusTooManyRequests, "overloaded",
			"Too many searches for occurrences are at work. Send fewer at once.").RetryAfter(turns.Wait)
	}
	defer turn.Release() // before the answer is sent: readers may be slow
	if refused = s.run(ctx); refused != nil {
		return nil, refused, nil
	}
	return s.answer.encode(), nil, nil
}

// take adds the selected items of a page to the answer and goes on behind it, if all fit. It returns how many do: one
// that is alone always does.
func (s *entrySelection) take(page *logsPage, selected []int) (fits int) {
	all, size := s.answer.items, 0
	for _, item := range all {
		size += len(item)
	}
	for fit, at := range selected {
		all = append(all, page.items[at].text)
		if size += len(page.items[at].text); len(all) > s.limit || len(all) > 1 && size > s.most {
			return fit
		}
	}
	if s.answer.items = all; page.Next != nil {
		s.cursor = *page.Next
	}
	return len(selected)
}

// nextSize is the size of the next page, which has as many entries of the group as are still wanted, if it is like
// the last one.
func (s *entrySelection) nextSize(size, read, selected int) int {
	const growth = 8
	if selected == 0 {
		return min(growth*size, httpapi.MaxLimit)
	}
	left := s.limit - len(s.answer.items)
	return min((left*read+selected-1)/selected, httpapi.MaxLimit)
}

// step reads a page, and finds which of its items are of the group. The page is nil if there is no
// answer in time, or one that refuses.
func (s *entrySelection) step(ctx context.Context, size int) (page *logsPage, selected []int, refused *recorder) {
	query := s.search.query()
	query.Set("limit", strconv.Itoa(size))
	query.Set("cursor", s.cursor)
	page = new(logsPage)
	if ok, refused := s.ask(ctx, question{path: s.logs, query: query.Encode()}, page); !ok {
		return nil, nil, refused
	}
	page.items = readItems(page.Items)
	for from := 0; from < len(page.items); {
		to := endOf(page.items, from)
		body := []byte(`{"items":[`)
		for _, e := range page.items[from:to] {
			body = append(append(body, e.text...), ',')
		}
		body = append(body[:len(body)-1], "]}"...)
		var found struct{ Entries []string }
		if ok, refused := s.ask(ctx, question{path: s.sel, body: body}, &found); !ok {
			return nil, nil, refused
		}
		for ; from < to; from++ {
			if slices.Contains(found.Entries, page.items[from].id) {
				selected = append(selected, from)
			}
		}
	}
	return page, selected, nil
}

// endOf is where the items of one question end that begin at one.
func endOf(entries []readItem, from int) (to int) {
	size := 0
	for to = from; to < len(entries) && to-from < mostSelected; to++ {
		if size += len(entries[to].text); size > selectBytes && to > from {
			break
		}
	}
	return to
}

// ask reads an answer into a value; ok is false if there is none in time, or one that refuses.
func (s *entrySelection) ask(ctx context.Context, asked question, into any) (ok bool, refused *recorder) {
	answer := s.gateway.askAs(ctx, s.reader, asked)
	switch {
	case answer == nil:
		return false, nil
	case answer.status != http.StatusOK:
		return false, answer
	}
	s.limits = rateLimits(answer)
	return json.Unmarshal(answer.body.Bytes(), into) == nil, nil
}

// item is what is kept of an item, and grouping reads; a log store of a later version may send more.
type item struct {
	ID           string          `json:"id"`
	Organization string          `json:"organization"`
	Project      string          `json:"project"`
	Environment  string          `json:"environment"`
	ReceivedAt   time.Time       `json:"received_at"`
	Entry        json.RawMessage `json:"entry,omitempty"`
}

// A readItem is an item as grouping reads it.
type readItem struct {
	id   string
	text []byte
}

func readItems(items []json.RawMessage) []readItem {
	read := make([]readItem, len(items))
	for i, text := range items {
		var known item
		_ = json.Unmarshal(text, &known) // a part of JSON that was read
		entry := known.Entry
		known.Entry = nil
		head, _ := json.Marshal(known) // texts and a time never fail
		read[i] = readItem{known.ID, append(append(append(head[:len(head)-1], `,"entry":`...), entry...), '}')}
	}
	return read
}
