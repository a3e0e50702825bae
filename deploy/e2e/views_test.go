package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// verify waits until the three views of a tenant are settled and
// compares all of them with what was posted.
func verify(t *testing.T, ctx context.Context, in installation, who tenant, h *history) {
	t.Helper()
	var sum totals
	testenv.Eventually(t, func() (err error) {
		stored, err := readBack(ctx, in, who)
		if err != nil {
			return err
		}
		sum, err = h.check(stored)
		return err
	})
	t.Logf("%d entries, %d bytes; of %d parts of unknown outcome %d are stored, whole", sum.entries, sum.bytes, sum.undecided, sum.stored)
	testenv.Eventually(t, func() error { return checkBalance(ctx, in, who, sum) })
	testenv.Eventually(t, func() error { return checkGroups(ctx, in, who, sum) })
}

// quiet posts one entry without other load: all three views show it
// soon after its 200.
func quiet(t *testing.T, ctx context.Context, in installation) {
	who := in.tenant(t, ctx, "quiet", "scale")
	m, h := &maker{mark: "quiet"}, &history{}
	entries := []sent{m.failing("go")}
	accepted, err := in.api.Post(ctx, who.key, plainly(body(texts(entries)...)))
	begun := time.Now()
	testenv.Must(t, err)
	checkAccepted(t, "quiet", accepted, entries, 0)
	h.accepted("quiet", entries)
	testenv.Eventually(t, func() error {
		stored, err := readBack(ctx, in, who)
		if err != nil {
			return err
		}
		sum, err := h.check(stored)
		return errors.Join(err, checkBalance(ctx, in, who, sum), checkGroups(ctx, in, who, sum))
	})
	took := time.Since(begun)
	t.Logf("in all three views after %s", took.Round(time.Millisecond))
	if took > quietLimit {
		t.Errorf("in all three views after %s, want %s", took, quietLimit)
	}
}

// readBack reads every entry of the tenant's project, and checks
// each page's promises.
func readBack(ctx context.Context, in installation, who tenant) (stored []string, err error) {
	last, ids := time.Time{}, map[string]bool{}
	err = in.api.EachLog(ctx, who.key, client.LogsQuery{Project: who.project}, func(e client.StoredEntry) error {
		if e.Organization != who.organization || e.Project != who.project || ids[e.ID] || e.ID == "" || e.ReceivedAt.IsZero() {
			return fmt.Errorf("read %+v, which is another tenant's, twice there or without id or time", e)
		}
		ids[e.ID] = true
		at, err := eventTime(e.Entry)
		if err != nil {
			return err
		}
		if !last.IsZero() && at.After(last) {
			return fmt.Errorf("entry %s of %s comes after one of %s: not newest first", e.ID, at, last)
		}
		last = at
		stored = append(stored, string(e.Entry))
		return nil
	})
	return stored, err
}

func eventTime(text []byte) (time.Time, error) {
	var entry struct{ Timestamp time.Time }
	err := json.Unmarshal(text, &entry)
	return entry.Timestamp, err
}

func checkBalance(ctx context.Context, in installation, who tenant, sum totals) error {
	balance, err := in.api.Balance(ctx, who.billing, who.organization)
	if err != nil {
		return err
	}
	if balance.Consumed != sum.bytes || balance.Remaining != balance.Granted-sum.bytes || balance.Organization != who.organization {
		return fmt.Errorf("the balance is %+v, want %d bytes consumed", balance, sum.bytes)
	}
	return nil
}

// checkGroups checks that there is exactly one group of each kind, with
// its exact count.
func checkGroups(ctx context.Context, in installation, who tenant, sum totals) error {
	groups, err := in.api.ErrorGroups(ctx, who.key, who.project)
	if err != nil {
		return err
	}
	counts := map[string]int64{}
	for _, group := range groups {
		counts[group.Type] += group.Count
		if group.Project != who.project || group.Count != sum.byKind[group.Type] || group.FirstSeen.After(group.LastSeen) {
			return fmt.Errorf("group %+v, want count %d", group, sum.byKind[group.Type])
		}
	}
	if len(groups) != len(sum.byKind) {
		return fmt.Errorf("%d groups %v, want %v", len(groups), counts, sum.byKind)
	}
	return checkSamples(ctx, in, who, groups)
}

// checkSamples reads each group by itself: the same, with occurrences
// and the reason for the grouping.
func checkSamples(ctx context.Context, in installation, who tenant, groups []client.ErrorGroup) error {
	for _, listed := range groups {
		group, err := in.api.ErrorGroup(ctx, who.key, listed.ID)
		if err != nil {
			return err
		}
		if group.ID != listed.ID || group.Count < listed.Count || len(group.Occurrences) == 0 || len(group.Why) == 0 {
			return fmt.Errorf("group %+v, listed as %+v", group, listed)
		}
	}
	return nil
}

// isolation: nothing of one organization is visible to another, not
// even whether it exists.
func isolation(t *testing.T, ctx context.Context, in installation, main, other tenant) {
	groups, err := in.api.ErrorGroups(ctx, main.key, main.project)
	testenv.Must(t, err)
	if len(groups) == 0 {
		t.Fatal("there is no group to hide")
	}
	key := map[string]string{"X-Api-Key": other.key}
	billing := map[string]string{"Authorization": "Bearer " + other.billing}
	for _, probe := range []struct {
		theirs, nobodys string
		header          map[string]string
	}{
		{"/logs?project=" + main.project, "/logs?project=" + alter(main.project), key},
		{"/projects/" + main.project + "/error-groups", "/projects/" + alter(main.project) + "/error-groups", key},
		{"/error-groups/" + groups[0].ID, "/error-groups/" + alter(groups[0].ID), key},
		{"/error-groups/" + groups[0].ID + "/occurrences", "/error-groups/" + alter(groups[0].ID) + "/occurrences", key},
		{"/organizations/" + main.organization + "/balance", "/organizations/" + alter(main.organization) + "/balance", billing},
	} {
		hidden, absent := refusal(t, ctx, in, probe.theirs, probe.header), refusal(t, ctx, in, probe.nobodys, probe.header)
		if hidden != absent || hidden != "404 not_found" {
			t.Errorf("GET %s is answered with %q, one that does not exist with %q, want 404 not_found", probe.theirs, hidden, absent)
		}
	}
	for _, path := range []string{"/organizations/" + main.organization + "/balance", "/api-keys?project=" + main.project} {
		if answer := refusal(t, ctx, in, path, key); answer[:2] != "40" {
			t.Errorf("GET %s with an API key is answered with %q", path, answer)
		}
	}
}

// alter returns an unknown id of the same form.
func alter(id string) string {
	text := []byte(id)
	last := len(text) - 1
	text[last] = map[bool]byte{true: '1', false: '0'}[text[last] == '0']
	return string(text)
}

func refusal(t *testing.T, ctx context.Context, in installation, path string, header map[string]string) string {
	t.Helper()
	answer, err := in.api.Call(ctx, client.Request{Method: "GET", Path: path, Header: header})
	testenv.Must(t, err)
	var problem struct{ Code string }
	if err := json.Unmarshal(answer.Body, &problem); err != nil {
		t.Errorf("GET %s: %v: %s", path, err, answer.Body)
	}
	return fmt.Sprintf("%d %s", answer.Status, problem.Code)
}

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
