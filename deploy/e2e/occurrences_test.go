package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// A failing tenant sends errors of a few kinds, one every millisecond.
type failing struct {
	tenant
	in   installation
	t    *testing.T
	next time.Time
	sent map[string]int // entries by kind
}

// Kinds of failures, of which the first two have one type, and the third is one of them whose cause has another type.
var failures = map[string][2]string{
	"cart":    {"java.lang.IllegalStateException", `"at com.acme.Cart.total(Cart.java:3)","at com.acme.Shop.pay(Shop.java:9)"`},
	"mail":    {"java.lang.IllegalStateException", `"at com.acme.Mail.send(Mail.java:5)","at com.acme.Shop.tell(Shop.java:7)"`},
	"wrapped": {"java.lang.IllegalStateException", `"at com.acme.Job.run(Job.java:1)","Caused by: java.sql.SQLException: no such table","at com.acme.Db.find(Db.java:2)"`},
	"untyped": {"", `"at com.acme.Old.go(Old.java:5)"`},

	"apples": {"java.lang.IllegalStateException", `"at com.acme.Fruit.eat(Fruit.java:5)"`},
	"pears":  {"java.lang.IllegalStateException", `"at com.acme.Fruit.eat(Fruit.java:5)"`},
}

// send sends an entry of each kind, and one without an error.
func (f *failing) send(kinds ...string) {
	f.t.Helper()
	var entries []string
	for _, kind := range kinds {
		entries = append(entries, f.entry(kind))
	}
	f.post(append(entries, fmt.Sprintf(`{"timestamp":%q,"level":"info","message":"all is well"}`, f.stamp()))...)
}

func (f *failing) post(entries ...string) {
	f.t.Helper()
	_, err := f.in.api.Post(f.t.Context(), f.key, plainly(body(entries...)))
	testenv.Must(f.t, err)
}

func (f *failing) stamp() string {
	f.next = f.next.Add(time.Millisecond)
	return f.next.Format(time.RFC3339Nano)
}

func (f *failing) entry(kind string) string {
	f.sent[kind]++
	typ := ""
	if of := failures[kind][0]; of != "" {
		typ = fmt.Sprintf(`"type":%q,`, of)
	}
	return fmt.Sprintf(`{"timestamp":%q,"level":"error","message":%q,"error":{%s"message":"it broke as nobody had thought of %s","stack_trace":[%s]}}`,
		f.stamp(), kind, typ, kind, failures[kind][1])
}

// group waits until a group has an occurrence with a message of the log entry, and so many of them.
func (f *failing) group(message string, count int) (id string) {
	f.t.Helper()
	testenv.Eventually(f.t, func() error {
		groups, err := f.in.api.ErrorGroups(f.t.Context(), f.key, f.project)
		if err != nil {
			return err
		}
		for _, g := range groups {
			found, err := f.in.api.ErrorGroup(f.t.Context(), f.key, g.ID)
			if err != nil {
				return err
			}
			if found.Count == int64(count) && slices.ContainsFunc(found.Occurrences, func(o client.ErrorSample) bool { return o.Message == message }) {
				id = g.ID
				return nil
			}
		}
		return fmt.Errorf("no group has %d %q: %+v", count, message, groups)
	})
	return id
}

// shows checks that a group has so many entries of each kind, the newest first, in pages of any size.
func (f *failing) shows(group string, want map[string]int) {
	f.t.Helper()
	for _, limit := range []int{2, 0} {
		got, last, ids := map[string]int{}, time.Time{}, map[string]bool{}
		err := f.in.api.EachOccurrence(f.t.Context(), f.key, group, limit, func(e client.StoredEntry) error {
			var entry struct{ Message string }
			at, unread := eventTime(e.Entry)
			err := errors.Join(unread, json.Unmarshal(e.Entry, &entry))
			if ids[e.ID] || !last.IsZero() && at.After(last) || e.Project != f.project || e.Organization != f.organization || e.Environment != "prod" {
				f.t.Errorf("after %s comes %+v", last, e)
			}
			ids[e.ID], last = true, at
			got[entry.Message]++
			return err
		})
		delete(got, "")
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			f.t.Errorf("in pages of %d the group has %v, want %v: %v", limit, got, want, err)
		}
	}
}

// Each group has exactly its entries, whatever others have the same type, and is merged or split.
func occurrences(t *testing.T, ctx context.Context, in installation, other tenant) {
	f := &failing{in.tenant(t, ctx, "failing", "scale"), in, t, time.Now().UTC().Add(-time.Minute).Truncate(time.Second), map[string]int{}}
	for range 4 {
		f.send("cart", "mail", "cart", "wrapped", "mail", "untyped", "cart")
	}
	f.next = time.Now().UTC().Add(time.Hour).Truncate(time.Second) // the clock of who sends it is ahead
	f.send("cart")
	f.next = f.next.Add(-2 * time.Hour)
	groups := map[string]string{}
	for kind, n := range f.sent {
		groups[kind] = f.group(kind, n)
	}
	testenv.Eventually(t, func() error { // the log store may be behind
		stored, err := readBack(ctx, in, f.tenant)
		if err == nil && len(stored) != 4*8+2 {
			err = fmt.Errorf("%d entries are stored", len(stored))
		}
		return err
	})
	for kind, group := range groups {
		f.shows(group, map[string]int{kind: f.sent[kind]})
	}

	t.Run("refusals", func(t *testing.T) { f.refuses(t, groups, other) })
	t.Run("merged", func(t *testing.T) {
		_, err := in.api.Regroup(ctx, f.key, groups["wrapped"], "merge", client.Regrouping{Into: groups["mail"]})
		testenv.Must(t, err)
		both := map[string]int{"mail": f.sent["mail"], "wrapped": f.sent["wrapped"]}
		f.shows(groups["mail"], both)
		f.shows(groups["wrapped"], both) // stands for its head
		_, err = in.api.Regroup(ctx, f.key, groups["mail"], "unmerge", client.Regrouping{Groups: []string{groups["wrapped"]}})
		testenv.Must(t, err)
		f.shows(groups["mail"], map[string]int{"mail": f.sent["mail"]})
	})
	t.Run("split", func(t *testing.T) { f.splits() })
}

// refuses checks that pages of a group are refused as the group is.
func (f *failing) refuses(t *testing.T, groups map[string]string, other tenant) {
	path := func(kind, query string) string { return "/error-groups/" + groups[kind] + "/occurrences?" + query }
	page, err := f.in.api.Call(t.Context(), client.Request{Method: http.MethodGet, Path: path("cart", "limit=1"), Header: map[string]string{"X-Api-Key": f.key}})
	var first struct {
		Next string `json:"next_cursor"`
	}
	testenv.Must(t, err)
	testenv.Must(t, json.Unmarshal(page.Body, &first))
	for name, c := range map[string]struct{ path, key, want string }{
		"another organization": {path("cart", ""), other.key, "404 not_found"},
		"nobody":               {path("cart", ""), "", "401 missing_api_key"},
		"another's cursor":     {path("mail", "cursor="+first.Next), f.key, "400 invalid_cursor"},
		"an unknown parameter": {path("mail", "from=now"), f.key, "400 invalid_request"},
		"an empty page":        {path("mail", "limit=0"), f.key, "400 invalid_request"},
	} {
		if got := refusal(t, t.Context(), f.in, c.path, map[string]string{"X-Api-Key": c.key}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// splits checks that entries from before a split stay in their group, and those after it are in their own.
func (f *failing) splits() {
	f.t.Helper()
	f.send("apples", "pears", "apples", "pears")
	whole := f.group("apples", 4)
	found, err := f.in.api.ErrorGroup(f.t.Context(), f.key, whole)
	testenv.Must(f.t, err)
	at := slices.IndexFunc(found.Occurrences, func(o client.ErrorSample) bool { return o.Message == "apples" })
	_, err = f.in.api.Regroup(f.t.Context(), f.key, whole, "split", client.Regrouping{Hash: found.Occurrences[at].Hash})
	testenv.Must(f.t, err)
	f.send("apples", "pears", "apples", "apples")
	off := f.group("apples", 3)
	f.group("pears", 5)
	f.shows(off, map[string]int{"apples": 3})
	f.shows(whole, map[string]int{"apples": 2, "pears": 3})
}
