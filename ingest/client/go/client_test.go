package weir

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestABatchIsSentAgainWithItsKey(t *testing.T) {
	for name, test := range map[string]struct {
		answer func() (*http.Response, error)
		least  time.Duration
	}{
		"a broken connection":  {breaks, 0},
		"an error":             {refuses(500, "internal"), 0},
		"an error of a proxy":  {answers(502, "<html>"), 0},
		"a wait":               {refuses(429, "rate_limited", "Retry-After: 90"), 90 * time.Second},
		"a wait until a time":  {refuses(429, "overloaded", "Retry-After: Sat, 01 Jan 2000 00:01:10 GMT", "Date: Sat, 01 Jan 2000 00:00:30 GMT"), 40 * time.Second},
		"an exhausted quota":   {refuses(429, "quota_exceeded", "Retry-After: 1000000"), 0},
		"a slow body":          {refuses(400, "incomplete_body"), 0},
		"an answer of nobody":  {answers(200, "<html>"), 0},
		"an answer cut off":    {answers(200, `{"processed":1,`), 0},
		"a redirection":        {answers(302, "", "Location: http://elsewhere.test/"), 0},
		"a page that is away":  {answers(404, ""), 0},
		"a gateway in trouble": {answers(503, "", "Retry-After: 3"), 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answers: []func() (*http.Response, error){test.answer, test.answer}}
				c, told := start(t, f, Options{})
				c.Log(Entry{Message: "one"})
				shut(t, c)
				if len(f.requests) != 3 || f.requests[0].key == "" || f.requests[0].key != f.requests[1].key || f.requests[1].key != f.requests[2].key {
					t.Fatalf("requests: %v", f.requests)
				}
				if gap := f.requests[1].at.Sub(f.requests[0].at); gap < test.least || gap > test.least+maxBackoff {
					t.Errorf("sent again after %v, want %v at least", gap, test.least)
				}
				if stats := c.Stats(); stats.Accepted != 1 || len(stats.Dropped) != 0 {
					t.Errorf("stats: %+v", stats)
				}
				if len(told.errs) != 1 || len(told.drops) != 0 {
					t.Errorf("told %v %v, want the first failure alone", told.errs, told.drops)
				}
			})
		})
	}
}

func TestABatchIsGivenUp(t *testing.T) {
	for code, reason := range map[string]Reason{"overloaded": Expired, "quota_exceeded": QuotaExceeded} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answers: slices.Repeat([]func() (*http.Response, error){refuses(429, code, "Retry-After: 90")}, 100)}
				if reason == QuotaExceeded {
					f.answers = f.answers[:4] // attempts, as jitter has it, may be few
				}
				c, told := start(t, f, Options{Limits: Limits{GiveUpAfter: time.Minute}})
				begun := time.Now()
				c.Log(Entry{Message: "one"})
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				err := c.Flush(ctx)
				if reason == Expired && (err != nil || time.Since(begun) < time.Minute) {
					t.Errorf("flushed after %v: %v", time.Since(begun), err)
				}
				f.mu.Lock()
				f.answers = nil
				f.mu.Unlock()
				c.Log(Entry{Message: "two"})
				shut(t, c)
				if reason == Expired && (told.count(Expired) != 1 || !slices.Contains(f.messages(), "dropped 1 entries: 1 expired")) {
					t.Errorf("told %v, sent %q", told.drops, f.messages())
				}
				if stats := c.Stats(); stats.Accepted+stats.Dropped[reason] != 2 {
					t.Errorf("stats: %+v", stats)
				}
			})
		})
	}
}

func TestEntriesAtFaultAreToldWithTheirFix(t *testing.T) {
	const fault = `{"index":1,"code":"message_too_large","detail":"The message is too large.","fix":"Send at most 10 KB."}`
	for name, test := range map[string]struct {
		answer   func() (*http.Response, error)
		accepted uint64
		messages []string
	}{
		"the others are accepted":          {answers(200, `{"processed":2,"rejected":1,"errors":[`+fault+`]}`), 2, []string{"a", "b", "c", "dropped 1 entries: 1 rejected"}},
		"the others are not, and go again": {answers(400, `{"code":"invalid_entries","rejected":1,"errors":[`+fault+`]}`), 2, []string{"a", "b", "c", "a", "c", "dropped 1 entries: 1 rejected"}},
		"there are no others":              {answers(400, `{"code":"invalid_entries","rejected":3,"errors":[`+fault+`]}`), 0, []string{"a", "b", "c", "dropped 3 entries: 3 rejected"}},
		"a fault of no entry":              {answers(400, `{"code":"batch_too_large","errors":[{"pointer":"/logs","code":"batch_too_large"}]}`), 0, []string{"a", "b", "c", "dropped 3 entries: 3 rejected"}},
		"the batch is at fault":            {answers(400, `{"code":"invalid_json","detail":"No."}`), 0, []string{"a", "b", "c", "dropped 3 entries: 3 rejected"}},
		"more than are named":              {answers(200, `{"processed":0,"rejected":3,"errors":[`+fault+`],"errors_truncated":true}`), 0, []string{"a", "b", "c", "dropped 3 entries: 3 rejected"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answers: []func() (*http.Response, error){test.answer}}
				c, told := start(t, f, Options{})
				for _, message := range []string{"a", "b", "c"} {
					c.Log(Entry{Message: message})
				}
				shut(t, c)
				if got := f.messages(); !slices.Equal(got, test.messages) {
					t.Errorf("sent %q, want %q", got, test.messages)
				}
				stats := c.Stats()
				if stats.Accepted != test.accepted || stats.Dropped[Rejected] != 3-test.accepted || told.count(Rejected) != int(3-test.accepted) {
					t.Errorf("stats %+v, told %v", stats, told.drops)
				}
				want := Drop{Rejected, 1, 1, "message_too_large", "The message is too large.", "Send at most 10 KB."}
				if strings.Contains(name, "others") && !slices.Contains(told.drops, want) {
					t.Errorf("told %v, want %v", told.drops, want)
				}
				keys := map[string]bool{}
				for _, r := range f.requests {
					keys[r.key] = true
				}
				if len(keys) != len(f.requests) {
					t.Error("a key came with two bodies")
				}
			})
		})
	}
}

func TestARefusedKeyStops(t *testing.T) {
	for _, status := range []int{401, 403} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answers: []func() (*http.Response, error){refuses(status, "api_key_revoked")}}
			c, told := start(t, f, Options{})
			c.Log(Entry{Message: "one"})
			time.Sleep(5 * time.Second)
			for range 10 {
				c.Log(Entry{Message: "more"})
			}
			time.Sleep(time.Minute)
			if err := c.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "WEIR_API_KEY") {
				t.Errorf("flush says %v", err)
			}
			_ = c.Close(t.Context())
			if len(f.requests) != 1 || len(told.errs) != 1 || !strings.Contains(told.errs[0].Error(), "api_key_revoked") {
				t.Errorf("%d requests, told %v", len(f.requests), told.errs)
			}
			if n := told.count(Unauthorized); n != 11 || c.Stats().Dropped[Unauthorized] != 11 {
				t.Errorf("told %d, stats %+v", n, c.Stats())
			}
		})
	}
}

func TestTheLowestLevelIsDroppedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answers: []func() (*http.Response, error){refuses(500, "unavailable", "Retry-After: 10")}}
		c, told := start(t, f, Options{Limits: Limits{QueueEntries: 4}})
		c.Log(Entry{Message: "on its way"})
		time.Sleep(2 * time.Second)
		for i, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug, slog.LevelDebug, slog.LevelWarn, slog.LevelError, LevelFatal, slog.LevelDebug, slog.LevelWarn} {
			c.Log(Entry{Level: level, Message: fmt.Sprintf("%d %v", i, level)})
		}
		shut(t, c)
		want := []string{"on its way", "on its way", "3 WARN", "4 ERROR", "5 ERROR+4", "7 WARN", "dropped 4 entries: 4 queue full"}
		if got := f.messages(); !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
		if told.count(QueueFull) != 4 {
			t.Errorf("told %v", told.drops)
		}
		notice := f.requests[len(f.requests)-1].entries[4]
		if fmt.Sprint(notice["level"], " ", notice["metadata"]) != "warn map[dropped_by_client:map[queue_full:4]]" {
			t.Errorf("the notice is %v", notice)
		}
	})
}

func TestANoticeThatIsLostIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answers: slices.Repeat([]func() (*http.Response, error){breaks}, 60)}
		c, _ := start(t, f, Options{Limits: Limits{QueueEntries: 1, GiveUpAfter: time.Minute}})
		for range 180 {
			c.Log(Entry{Message: "x"})
			time.Sleep(time.Second)
		}
		f.mu.Lock()
		f.answers = nil
		f.mu.Unlock()
		shut(t, c)
		said := 0.0
		for i, r := range f.requests {
			for _, e := range r.entries {
				metadata, _ := e["metadata"].(map[string]any)
				by, _ := metadata["dropped_by_client"].(map[string]any)
				for _, n := range by {
					if i == len(f.requests)-1 || r.key != f.requests[i+1].key && len(f.answers) == 0 {
						said += n.(float64)
					}
				}
			}
		}
		stats := c.Stats()
		lost := uint64(0)
		for _, n := range stats.Dropped {
			lost += n
		}
		if stats.Accepted+lost != 180 {
			t.Errorf("stats: %+v", stats)
		}
		if said < float64(lost) {
			t.Errorf("the notices that arrived say %v of %d", said, lost)
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		c, _ := start(t, f, Options{Limits: Limits{BatchBytes: 4096}})
		for range 100 {
			c.Log(Entry{Message: strings.Repeat("x", 1000)})
		}
		begun := time.Now()
		synctest.Wait()
		for _, r := range f.requests {
			if len(r.entries) > 4 || !r.at.Equal(begun) {
				t.Errorf("%d entries after %v", len(r.entries), r.at.Sub(begun))
			}
		}
		c.Log(Entry{Message: strings.Repeat("x", maxEntry)})
		time.Sleep(time.Second)
		synctest.Wait()
		if c.Stats().Dropped[TooLarge] != 1 || c.Stats().Accepted != 100 {
			t.Errorf("stats: %+v", c.Stats())
		}
		c.Log(Entry{Message: "waits for others"})
		begun = time.Now()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if gap := f.requests[len(f.requests)-1].at.Sub(begun); gap != time.Second {
			t.Errorf("sent after %v, want 1 s", gap)
		}
		shut(t, c)
	})
}

func TestThePaceIsTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two years ahead: 59 of 60 tokens are back in 59 seconds.
		limited := answers(200, `{"processed":1}`, "X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1009843260", "Date: Tue, 01 Jan 2002 00:00:00 GMT")
		f := &fake{answers: slices.Repeat([]func() (*http.Response, error){limited}, 100)}
		c, _ := start(t, f, Options{Limits: Limits{BatchEntries: 1}})
		for range 10 {
			c.Log(Entry{Message: "x"})
		}
		shut(t, c)
		for i := range f.requests[1:] {
			if gap := f.requests[i+1].at.Sub(f.requests[i].at); gap != time.Second {
				t.Fatalf("sent after %v, want 1 s", gap)
			}
		}
	})
}

func TestNothingIsSentAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answers: slices.Repeat([]func() (*http.Response, error){breaks}, 1000)}
		c, told := start(t, f, Options{})
		for range 10 {
			c.Log(Entry{Message: "x"})
		}
		time.Sleep(2 * time.Second) // a batch is on its way
		for range 5 {
			c.Log(Entry{Message: "y"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); err == nil {
			t.Error("Close says nothing of what was not sent")
		}
		sent := len(f.requests)
		c.Log(Entry{Message: "late"})
		time.Sleep(time.Hour)
		if len(f.requests) != sent {
			t.Error("sent after Close")
		}
		if told.count(Closed) != 15 || c.Stats().Dropped[Closed] != 16 {
			t.Errorf("told %v, stats %+v", told.drops, c.Stats())
		}
		_ = c.Close(t.Context())
	})
}

func TestFlushWaitsForWhatWasBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answers: []func() (*http.Response, error){breaks}}
		c, _ := start(t, f, Options{})
		c.Log(Entry{Message: "one"})
		if err := c.Flush(t.Context()); err != nil || c.Stats().Accepted != 1 {
			t.Errorf("flush: %v, %+v", err, c.Stats())
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		shut(t, c)
	})
}
