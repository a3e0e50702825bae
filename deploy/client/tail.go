package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An Event is one of a tail.
type Event struct {
	Entry   *StoredEntry // nil: it is none
	Skipped int          // entries that are not shown
	Reason  string       // for that, or of the end
}

// tailSilence is how long a tail may say nothing; a comment comes every 15 s.
const tailSilence = time.Minute

// ErrTailCut means that a tail has ended without its end.
var ErrTailCut = errors.New("the connection was cut")

// Tail calls visit with each event of the query until the tail ends.
func (c *Client) Tail(ctx context.Context, key string, query LogsQuery, visit func(Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+query.tailPath(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", key)
	unlimited := *c.http
	unlimited.Timeout = 0
	answer, err := unlimited.Do(request)
	if err != nil {
		return fmt.Errorf("cannot watch the logs: %w", err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, longestEvent)
	if answer.StatusCode != http.StatusOK {
		lines.Scan()
		return Answer{Status: answer.StatusCode, Header: answer.Header, Body: lines.Bytes()}.Problem()
	}
	silence := time.AfterFunc(tailSilence, cancel)
	defer silence.Stop()
	for kind := ""; lines.Scan(); silence.Reset(tailSilence) {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			kind = value
		case field == "data":
			event, err := eventOf(kind, value)
			if err == nil {
				err = visit(event)
			}
			if err != nil || kind == "end" {
				return err
			}
		}
	}
	return errors.Join(ErrTailCut, lines.Err())
}

// longestEvent is more than an entry and its item have, in bytes.
const longestEvent = 1 << 20

func (q LogsQuery) tailPath() string {
	values := q.values()
	for _, ofThePast := range []string{"from", "to", "limit"} {
		values.Del(ofThePast)
	}
	return "/logs/tail?" + values.Encode()
}

func eventOf(kind, data string) (event Event, err error) {
	switch kind {
	case "entry":
		event.Entry = &StoredEntry{}
		err = json.Unmarshal([]byte(data), event.Entry)
	case "skipped", "end":
		var told struct {
			Entries int
			Reason  string
		}
		err = json.Unmarshal([]byte(data), &told)
		event.Skipped, event.Reason = told.Entries, told.Reason
	}
	if err != nil {
		return event, fmt.Errorf("cannot read an event of the tail, %.100q: %w", data, err)
	}
	return event, nil
}
